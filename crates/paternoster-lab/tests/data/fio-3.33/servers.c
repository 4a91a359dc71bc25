// Servers behind libaio's calls, for watching fio: SERVERS of them (16), each of which takes SERVICE_US
// (10000) for an I/O, in the order of arrival. Nothing is read or written. LOG names a file for a line
// per I/O: the microsecond in which it is submitted, and how many are outstanding with it.
//
//   gcc -O2 -shared -fPIC -o servers.so servers.c
//   SERVERS=4 SERVICE_US=10000 LOG=log LD_PRELOAD=./servers.so fio --ioengine=libaio ...
#define _GNU_SOURCE
#include <limits.h>
#include <linux/aio_abi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MOST 4096
static int servers = 16;
static int64_t service = 10000000, first, free_at[MOST];
static FILE *lines;
static struct { int64_t at; struct iocb *io; } waiting[MOST];
static int outstanding;

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int io_setup(int most, void **context) {
    char *said;
    if ((said = getenv("SERVERS"))) servers = atoi(said);
    if ((said = getenv("SERVICE_US"))) service = atoll(said) * 1000;
    if ((said = getenv("LOG"))) lines = fopen(said, "w");
    *context = malloc(8);
    return 0;
}

int io_queue_init(int most, void **context) { return io_setup(most, context); }

int io_destroy(void *context) {
    if (lines) fflush(lines);
    return 0;
}

int io_queue_release(void *context) { return io_destroy(context); }

int io_cancel(void *context, struct iocb *io, struct io_event *event) { return -22; }

int io_submit(void *context, long count, struct iocb **ios) {
    for (long i = 0; i < count; i++) {
        int64_t t = now();
        if (!first) first = t;
        int server = 0;
        for (int s = 1; s < servers; s++)
            if (free_at[s] < free_at[server]) server = s;
        free_at[server] = (free_at[server] > t ? free_at[server] : t) + service;
        waiting[outstanding].at = free_at[server];
        waiting[outstanding++].io = ios[i];
        if (lines) fprintf(lines, "%ld %d\n", (long)((t - first) / 1000), outstanding);
    }
    return count;
}

int io_getevents(void *context, long least, long most, struct io_event *events,
                 struct timespec *timeout) {
    int64_t start = now(), longest = -1;
    if (timeout) longest = timeout->tv_sec * 1000000000LL + timeout->tv_nsec;
    for (long got = 0;;) {
        int64_t t = now(), next = INT64_MAX;
        for (int i = 0; i < outstanding && got < most;) {
            if (waiting[i].at > t) {
                if (waiting[i].at < next) next = waiting[i].at;
                i++;
                continue;
            }
            struct iocb *io = waiting[i].io;
            events[got].obj = (uint64_t)(uintptr_t)io;
            events[got].data = io->aio_data;
            events[got].res = io->aio_nbytes;
            events[got++].res2 = 0;
            waiting[i] = waiting[--outstanding];
        }
        if (got >= least || outstanding == 0) return got;
        if (longest >= 0 && t - start >= longest) return got;
        int64_t pause = next - t - 50000;
        if (pause > 0) {
            struct timespec span = {pause / 1000000000, pause % 1000000000};
            nanosleep(&span, 0);
        }
    }
}
