//! The images of volumes that are made by request: what each is to be, and the files.
//!
//! Paths are below the pool's directory, and no part of one is a symbolic link when the volume is
//! made; of a pool without a directory they are absolute, and anywhere. What was made is removed
//! again unless it becomes a volume.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Component, Path, PathBuf};

use paternoster_disk::device_size;
use rustix::fs::{
    CWD, FallocateFlags, FlockOperation, Mode, OFlags, RenameFlags, ResolveFlags, SeekFrom,
    copy_file_range, fallocate, flock, ioctl_ficlone, openat2, renameat_with, seek, statvfs,
};
use rustix::io::Errno;

use super::Disk;
use super::store::{UNFINISHED, sync_directory_of};
use crate::config::{BackendConfig, LEAST, MULTIPLE, PoolKind, Source, Wanted, far_options};
use crate::ctl::CatalogueError;
use crate::sandbox;

/// How the name of an image ends.
pub(super) const IMAGE: &str = ".img";

/// Only the user who runs the server may use an image that it makes.
const MODE: Mode = Mode::RUSR.union(Mode::WUSR);

/// An image that is to be a volume, and how it comes to be; nothing is changed yet.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) backend: BackendConfig,
    pub(super) size: u64,
    from: From,
    copy: bool,
    /// Whether it is to be there after a crash.
    durable: bool,
}

#[derive(Debug)]
enum From {
    New {
        allocated: bool,
    },
    /// It is locked, so that nobody who locks too writes to it.
    Template(File),
    Itself,
}

/// An image that is there, and removed when this is dropped if it was made and is not kept.
#[derive(Debug)]
pub(super) struct Image {
    /// Nowhere, where there is none.
    path: PathBuf,
    /// Whether it was made, and has not its own name yet.
    is_unfinished: bool,
    is_temporary: bool,
}

impl Plan {
    /// Looks at what there is; a template that is a volume has that path.
    pub(super) fn of(
        pool: &Disk,
        wanted: &Wanted,
        template: impl FnOnce(&str) -> Result<Option<PathBuf>, CatalogueError>,
    ) -> Result<Self, CatalogueError> {
        let (copy, durable) = (wanted.more.copy, wanted.is_durable());
        let path = path_of(pool, wanted)?;
        let asked = wanted.more.size;
        let (from, has) = match &wanted.more.source {
            Source::Far(_) => return Err(other_source(pool)),
            Source::New { allocated } => (From::New { allocated: *allocated }, None),
            Source::Template(name) => {
                let template = match template(name)? {
                    Some(template) => template,
                    None => directory(pool)?.join(name),
                };
                let file = open_template(pool, &template)?;
                let has = size_of(&template, &file)?;
                (From::Template(file), Some(has))
            }
            Source::Path(_) => {
                let has = size_of(&path, &open(pool, &path, OFlags::RDONLY)?)?;
                if has == 0 {
                    return Err(image_error(&path, &io::Error::other("it has 0 bytes")));
                }
                check_least(has)?;
                if let Some(size) = asked.filter(|size| *size != has) {
                    let allowed = format!("the image has {has} bytes, and so has the volume");
                    return Err(CatalogueError::Size { size, allowed });
                }
                let backend = file(pool, path);
                return Ok(Self { backend, size: has, from: From::Itself, copy, durable });
            }
        };
        let size =
            asked.or(has).ok_or_else(|| CatalogueError::Value("missing key `size`".to_owned()))?;
        if let Some(has) = has.filter(|&has| size < has) {
            let allowed = format!("the template has {has} bytes; as many or more are allowed");
            return Err(CatalogueError::Size { size, allowed });
        }
        check_size(size)?;
        Ok(Self { backend: file(pool, path), size, from, copy, durable })
    }

    /// A volume on what is no image.
    pub(super) fn without_image(backend: BackendConfig, size: u64) -> Self {
        Self { backend, size, from: From::Itself, copy: false, durable: false }
    }

    /// Bytes that the file system is asked to set aside at once.
    pub(super) fn takes_at_once(&self) -> u64 {
        match self.from {
            From::New { allocated: true } => self.size,
            From::Template(_) if self.copy => self.size,
            From::New { .. } | From::Template(_) | From::Itself => 0,
        }
    }

    /// Makes the image.
    pub(super) fn carry_out(self, pool: &Disk) -> Result<Image, CatalogueError> {
        let Self { backend, size, from, copy, durable } = self;
        let path = match backend {
            BackendConfig::File { path, .. } => path,
            _ => PathBuf::new(),
        };
        if matches!(from, From::Itself) {
            return Ok(Image { path, is_unfinished: false, is_temporary: false });
        }
        if path.symlink_metadata().is_ok() {
            return Err(CatalogueError::ImageExists { path });
        }
        let unfinished = unfinished(&path);
        // A server that was killed may have left it: nobody else makes a volume of that name now.
        let _ = fs::remove_file(&unfinished);
        let file = open(pool, &unfinished, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)?;
        let image = Image { path, is_unfinished: true, is_temporary: true };
        let failed = |error: io::Error| image_error(&image.path, &error);
        match from {
            From::New { allocated: true } => {
                fallocate(&file, FallocateFlags::empty(), 0, size)
                    .map_err(|errno| failed(errno.into()))?;
            }
            From::Template(template) => share_blocks(pool, &template, &file, copy, &image)?,
            From::New { allocated: false } | From::Itself => {}
        }
        file.set_len(size).map_err(failed)?;
        if durable {
            file.sync_all().and_then(|()| sync_directory_of(&image.path)).map_err(failed)?;
        }
        Ok(image)
    }
}

impl Image {
    /// Gives it its name, which nothing else may have. Where a crash takes the name back, the image
    /// of a volume that is recorded is named again.
    pub(super) fn finish(&mut self) -> Result<(), CatalogueError> {
        if self.is_unfinished {
            name(&self.path)?;
            self.is_unfinished = false;
        }
        Ok(())
    }

    /// It is a volume's.
    pub(super) fn keep(mut self) {
        self.is_temporary = false;
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        if self.is_temporary {
            // Nobody has heard of it.
            let unfinished = self.is_unfinished.then(|| unfinished(&self.path));
            let _ = fs::remove_file(unfinished.as_ref().unwrap_or(&self.path));
        }
    }
}

/// What an image is called that has not all that it begins with: no volume's image is called so.
fn unfinished(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{UNFINISHED}{name}"))
}

/// Gives an image its name that has all that it begins with.
fn name(path: &Path) -> Result<(), CatalogueError> {
    match renameat_with(CWD, unfinished(path), CWD, path, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        Err(Errno::EXIST) => Err(CatalogueError::ImageExists { path: path.to_owned() }),
        Err(errno) => Err(image_error(path, &errno.into())),
    }
}

/// Gives the image of a volume that was made its name, if a crash came before that.
pub(super) fn finish_recorded(of: &Wanted, of_is: &BackendConfig) -> Result<(), CatalogueError> {
    match of_is {
        BackendConfig::File { path, .. }
            if of.is_new() && !path.exists() && unfinished(path).exists() =>
        {
            name(path)
        }
        _ => Ok(()),
    }
}

/// That a pool of its kind makes no volume of that source.
pub(super) fn other_source(pool: &Disk) -> CatalogueError {
    CatalogueError::Source { pool: pool.name.clone(), kind: pool.kind() }
}

/// Refuses what is there and smaller than any volume that a request makes.
pub(super) fn check_least(size: u64) -> Result<(), CatalogueError> {
    if size >= LEAST {
        return Ok(());
    }
    Err(CatalogueError::Size { size, allowed: format!("{LEAST} bytes or more are allowed") })
}

/// Refuses a size that no volume has that is made.
pub(super) fn check_size(size: u64) -> Result<(), CatalogueError> {
    if size.is_multiple_of(MULTIPLE) {
        return Ok(());
    }
    let allowed = format!("whole blocks of {MULTIPLE} bytes are allowed");
    Err(CatalogueError::Size { size, allowed })
}

/// Refuses to make or grow a volume where too little would be free then.
pub(super) fn check_free(pool: &Disk, takes: u64) -> Result<(), CatalogueError> {
    let keep_free = pool.config.keys.keep_free;
    // A file system that hangs is not asked for nothing.
    let asked = (keep_free > 0 || takes > 0).then(|| free(pool)).flatten();
    let Some((free, all)) = asked else { return Ok(()) };
    let kept = u128::from(all) * u128::from(keep_free) / 100;
    if u128::from(free) >= kept + u128::from(takes) {
        return Ok(());
    }
    let pool = pool.name.clone();
    Err(CatalogueError::NoSpace { pool, free, all, keep_free })
}

/// Bytes of the file system of a pool's directory: those that are free for users, and all.
pub(super) fn free(pool: &Disk) -> Option<(u64, u64)> {
    let seen = statvfs(pool.config.keys.path.as_deref()?).ok()?;
    Some((seen.f_bavail * seen.f_frsize, seen.f_blocks * seen.f_frsize))
}

/// The error of something that was done to an image.
pub(super) fn image_error(path: &Path, error: &io::Error) -> CatalogueError {
    CatalogueError::Image { path: path.to_owned(), why: sandbox::explained(error) }
}

/// What stands behind a volume that a request has made.
pub(super) fn backend_of(pool: &Disk, wanted: &Wanted) -> Result<BackendConfig, CatalogueError> {
    let size = wanted.more.size.unwrap_or_default();
    Ok(match (pool.kind(), &wanted.more.source) {
        (PoolKind::Local, _) => file(pool, path_of(pool, wanted)?),
        (PoolKind::Far, Source::Far(uri)) => {
            let options = far_options(&pool.config.keys, uri);
            BackendConfig::Nbd { options, size, rotational: false }
        }
        (PoolKind::Modelled, Source::New { allocated: false }) if !wanted.is_durable() => {
            pool.config.backend.with_size(size)
        }
        // Its pool was another one when it was made.
        _ => return Err(other_source(pool)),
    })
}

/// An image of a pool.
fn file(pool: &Disk, path: PathBuf) -> BackendConfig {
    BackendConfig::File { path, cache: pool.config.keys.cache }
}

/// Where the image of a volume is.
fn path_of(pool: &Disk, wanted: &Wanted) -> Result<PathBuf, CatalogueError> {
    match &wanted.more.source {
        Source::Path(path) => beside(pool, path),
        Source::New { .. } | Source::Template(_) | Source::Far(_) => {
            Ok(directory(pool)?.join(format!("{}{IMAGE}", wanted.name)))
        }
    }
}

fn directory(pool: &Disk) -> Result<&Path, CatalogueError> {
    let none = || CatalogueError::NoDirectory { pool: pool.name.clone() };
    pool.config.keys.path.as_deref().ok_or_else(none)
}

/// The path of an image that is there: in the pool's directory, or of a pool without one anywhere.
fn beside(pool: &Disk, path: &Path) -> Result<PathBuf, CatalogueError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if name.starts_with(UNFINISHED) {
        let why = format!("a name that does not begin with {UNFINISHED:?} is allowed: rename it");
        return Err(CatalogueError::Image { path: path.to_owned(), why });
    }
    if path.components().any(|part| part == Component::ParentDir) {
        let why = "a path without \"..\" is allowed".to_owned();
        return Err(CatalogueError::Image { path: path.to_owned(), why });
    }
    match &pool.config.keys.path {
        Some(directory) if path.is_relative() => Ok(directory.join(path)),
        None if path.is_absolute() => Ok(path.to_owned()),
        Some(_) => {
            let why = "a path that is relative to the pool's is allowed".to_owned();
            Err(CatalogueError::Image { path: path.to_owned(), why })
        }
        None => Err(CatalogueError::NoDirectory { pool: pool.name.clone() }),
    }
}

/// Opens a file of the pool's directory, or of a pool without one any.
fn open(pool: &Disk, path: &Path, flags: OFlags) -> Result<File, CatalogueError> {
    let failed = |errno: Errno| image_error(path, &errno.into());
    let flags = flags | OFlags::CLOEXEC;
    let opened: OwnedFd = match &pool.config.keys.path {
        Some(directory) => {
            let inside = path.strip_prefix(directory).unwrap_or(path);
            let directory = rustix::fs::open(directory, OFlags::PATH | OFlags::CLOEXEC, MODE);
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
            let mode = if flags.contains(OFlags::CREATE) { MODE } else { Mode::empty() };
            openat2(directory.map_err(failed)?, inside, flags, mode, resolve)
        }
        None => openat2(CWD, path, flags, Mode::empty(), ResolveFlags::empty()),
    }
    .map_err(failed)?;
    Ok(File::from(opened))
}

/// Opens a template, which nobody may have open for writing, as far as locks say.
fn open_template(pool: &Disk, path: &Path) -> Result<File, CatalogueError> {
    let file = open(pool, path, OFlags::RDONLY)?;
    flock(&file, FlockOperation::NonBlockingLockShared).map_err(|errno| match errno {
        Errno::WOULDBLOCK => {
            let why = "somebody may write to it: a template is a read-only volume, or an image \
                       that nobody has open";
            CatalogueError::Image { path: path.to_owned(), why: why.to_owned() }
        }
        other => image_error(path, &other.into()),
    })?;
    Ok(file)
}

/// The bytes of a file or block device.
fn size_of(path: &Path, file: &File) -> Result<u64, CatalogueError> {
    let failed = |error: &io::Error| image_error(path, error);
    let seen = file.metadata().map_err(|error| failed(&error))?;
    match seen.file_type() {
        kind if kind.is_file() => Ok(seen.len()),
        kind if kind.is_block_device() => {
            device_size(&seen).ok_or_else(|| failed(&io::Error::other("sysfs has not its size")))
        }
        _ => Err(failed(&io::Error::other("a regular file or block device is allowed"))),
    }
}

/// Has a file begin with a template's bytes.
fn share_blocks(
    pool: &Disk,
    template: &File,
    file: &File,
    copy: bool,
    image: &Image,
) -> Result<(), CatalogueError> {
    match ioctl_ficlone(file, template) {
        Ok(()) => Ok(()),
        Err(Errno::OPNOTSUPP | Errno::XDEV | Errno::INVAL | Errno::NOTTY) if copy => {
            copy_data(template, file).map_err(|errno| image_error(&image.path, &errno.into()))
        }
        Err(errno @ (Errno::OPNOTSUPP | Errno::XDEV | Errno::INVAL | Errno::NOTTY)) => {
            Err(CatalogueError::NoReflink { pool: pool.name.clone(), why: errno.to_string() })
        }
        Err(errno) => Err(image_error(&image.path, &errno.into())),
    }
}

/// Copies what is stored of a file, so that its holes stay holes.
fn copy_data(from: &File, to: &File) -> Result<(), Errno> {
    let mut at = 0;
    loop {
        at = match seek(from, SeekFrom::Data(at)) {
            Ok(data) => data,
            // There is a hole up to the end.
            Err(Errno::NXIO) => return Ok(()),
            Err(errno) => return Err(errno),
        };
        let end = seek(from, SeekFrom::Hole(at))?;
        while at < end {
            let (mut read, mut written) = (at, at);
            let most = usize::try_from(end - at).unwrap_or(usize::MAX);
            match copy_file_range(from, Some(&mut read), to, Some(&mut written), most)? {
                0 => return Err(Errno::IO),
                copied => at += copied as u64,
            }
        }
    }
}
