//! The JSON Schema that `serve --schema` prints, in the hands of a validator that is not ours.

use std::fs;
use std::path::Path;

use paternoster_server::config::Config;
use serde_json::{Value, json};

use crate::support::{run, temp_dir};

/// Says of each document of `documents.json`, a line each, whether `schema.json` allows it.
const VALIDATE: &str = "
import json, jsonschema
schema = json.load(open('schema.json'))
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
for document in json.load(open('documents.json')):
    print(validator.is_valid(document))
";

/// Which of these files, in TOML, the schema allows.
fn allowed(files: &[String]) -> Vec<bool> {
    let dir = temp_dir();
    let schema = run("", env!("CARGO_BIN_EXE_paternoster"), &["serve", "--schema"], dir.path());
    fs::write(dir.path().join("schema.json"), schema).expect("a file");
    let documents: Vec<Value> = files.iter().map(|file| as_json(file)).collect();
    fs::write(dir.path().join("documents.json"), json!(documents).to_string()).expect("a file");
    let said = run("python3-jsonschema", "python3", &["-c", VALIDATE], dir.path());
    let said: Vec<_> = said
        .lines()
        .map(|line| match line {
            "True" => true,
            "False" => false,
            line => panic!("{line}"),
        })
        .collect();
    assert_eq!(said.len(), files.len(), "an answer for each");
    said
}

fn as_json(text: &str) -> Value {
    let table: toml::Table = text.parse().expect("TOML");
    serde_json::to_value(table).expect("JSON")
}

/// The configurations that documents show.
fn examples() -> Vec<String> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let pages = std::fs::read_dir(docs).expect("the documents");
    let pages = pages.map(|page| page.expect("a page").path());
    let pages = pages.filter(|page| page.extension().is_some_and(|extension| extension == "md"));
    let texts = pages.map(|page| std::fs::read_to_string(page).expect("a page"));
    let blocks = texts.flat_map(|text| {
        let blocks = text.split("```toml\n").skip(1).map(|rest| rest.split("```").next());
        blocks.map(|block| block.unwrap_or_default().to_owned()).collect::<Vec<_>>()
    });
    blocks.filter(|block| block.contains("[disks.") && block.contains("[exports.")).collect()
}

/// A small file with further lines at its top, of its disk, and of its export.
fn with(top: &str, of_disk: &str, of_export: &str) -> String {
    format!(
        "{top}\n[disks.d]\nbackend = \"memory\"\nsize = \"1M\"\n{of_disk}\n[exports.e]\n\
         disk = \"d\"\n{of_export}\n"
    )
}

#[test]
fn schema_allows_what_the_documents_show_and_what_the_parser_takes() {
    let mut files = examples();
    assert!(files.len() >= 4, "{} examples", files.len());
    for (top, of_disk, of_export) in [
        ("", "", ""),
        ("payload_timeout = \"1500ms\"", "depth = 1024", "size = \"1K\""),
        ("unix_mode = 0o660", "tunables = { cost = \"bytes\" }", "offset = 512"),
        ("[[listen]]\nunix = \"a\"\nexports = [\"e\"]", "rotational = true", "ioprio = \"idle\""),
        ("[groups.\"/e\"]\nriops = \"max\"\nwbps = \"1M\"", "poll = \"hybrid\"", ""),
        ("[groups.\"/\"]\nbps = \"90M\"", "depth = \"learned\"", "ioprio = \"rt/3\""),
        ("tcp = \"[::1]:0\"\nmetrics = \"127.0.0.1:9\"", "", "ioprio = \"none\""),
    ] {
        let file = with(top, of_disk, of_export);
        Config::from_toml(&file, Path::new("c.toml")).expect("the parser takes it");
        files.push(file);
    }
    for (file, allowed) in files.iter().zip(allowed(&files)) {
        assert!(allowed, "{file}");
    }
}

#[test]
fn schema_refuses_what_a_key_does_not_take() {
    let files = [
        ("colour = 1", "", ""),
        ("payload_timeout = 30", "", ""),
        ("payload_timeout = \"30\"", "", ""),
        ("threads = 0", "", ""),
        ("engine = \"aio\"", "", ""),
        ("unix_mode = \"0999\"", "", ""),
        ("", "depth = 1025", ""),
        ("", "depth = \"most\"", ""),
        ("tcp = \"localhost\"", "", ""),
        ("", "", "ioprio = \"rt/9\""),
        ("", "rotational = \"yes\"", ""),
        ("", "plug = true", ""),
        ("", "", "read_only = 1"),
        ("", "", "size = \"1X\""),
        ("[groups.\"/e\"]\nweight = 1001", "", ""),
        ("[groups.\"/e\"]\nriops = 0", "", ""),
    ]
    .map(|(top, of_disk, of_export)| with(top, of_disk, of_export));
    for (file, allowed) in files.iter().zip(allowed(&files)) {
        assert!(!allowed, "{file}");
        Config::from_toml(file, Path::new("c.toml")).expect_err("the parser refuses it too");
    }
}
