//! JSON schemas of draft 4. Keywords, and the order in which they are tested, are those of MySQL's validator:
//! the members of an object in the order of the document, then the object, then `enum`, `allOf`, `anyOf`,
//! `oneOf` and `not`. As there, a keyword whose value has a wrong type, and a pattern that is none, are
//! ignored.

use fancy_regex::Regex;
use junctor_model::error::{Error, Result};
use junctor_model::json::{self, Json, Members, compare};

use super::super::regexp;

/// The types of values, as bits.
const NULL: u8 = 1;
const BOOLEAN: u8 = 2;
const OBJECT: u8 = 4;
const ARRAY: u8 = 8;
const STRING: u8 = 16;
const INTEGER: u8 = 32;
const NUMBER: u8 = 64;
const ANY: u8 = u8::MAX;

/// A schema that is read.
#[derive(Debug)]
pub(super) struct Schema {
    types: u8,
    choices: Vec<Vec<u8>>,
    all_of: Vec<Schema>,
    any_of: Vec<Schema>,
    one_of: Vec<Schema>,
    not: Option<Box<Schema>>,
    properties: Vec<(Vec<u8>, Schema)>,
    required: Vec<Vec<u8>>,
    patterns: Vec<(Regex, Schema)>,
    dependencies: Vec<(Vec<u8>, Dependency)>,
    /// The rule for members that neither a property nor a pattern names.
    more_properties: Others,
    properties_count: (usize, usize),
    items: Items,
    items_count: (usize, usize),
    unique_items: bool,
    characters: (usize, usize),
    pattern: Option<Regex>,
    /// A number, and whether it is excluded.
    minimum: Option<(Vec<u8>, bool)>,
    maximum: Option<(Vec<u8>, bool)>,
    multiple_of: Option<Vec<u8>>,
}

#[derive(Debug)]
enum Others {
    Allowed,
    Forbidden,
    Of(Box<Schema>),
}

#[derive(Debug)]
enum Items {
    Of(Box<Schema>),
    Tuple(Vec<Schema>, Others),
}

#[derive(Debug)]
enum Dependency {
    Properties(Vec<Vec<u8>>),
    Schema(Box<Schema>),
}

/// A value that does not fit a schema.
#[derive(Debug)]
pub(super) struct Misfit {
    /// The keyword that it violates.
    pub keyword: &'static str,
    /// The names on the way to the schema with the keyword, the last first.
    schema: Vec<String>,
    /// The names on the way to the value, the last first.
    document: Vec<String>,
}

/// Why a test stopped.
enum Stop {
    Misfit(Box<Misfit>),
    Error(Box<Error>),
}

type Test = std::result::Result<(), Stop>;

impl Schema {
    /// Reads a schema. Error: 1235 for `$ref`.
    pub fn read(document: &[u8]) -> Result<Schema> {
        if has_reference(document) {
            return Err(Error::not_supported("references in JSON Schema"));
        }
        Ok(Schema::of(document))
    }

    /// Anything but an object accepts every value.
    fn of(document: &[u8]) -> Schema {
        let members = match Json::of(document) {
            Json::Object(members) => Keywords(Some(members)),
            _ => Keywords(None),
        };
        let schemas = |key| members.array(key).into_iter().map(Schema::of).collect();
        let named = |key| members.object(key).into_iter().map(|(name, part)| (name.to_vec(), Schema::of(part)));
        let patterns = members.object("patternProperties").into_iter();
        let dependencies = members.object("dependencies").into_iter();
        Schema {
            types: members.types(),
            choices: members.array("enum").into_iter().map(<[u8]>::to_vec).collect(),
            all_of: schemas("allOf"),
            any_of: schemas("anyOf"),
            one_of: schemas("oneOf"),
            not: members.schema("not").map(Box::new),
            properties: named("properties").collect(),
            required: members.strings("required"),
            patterns: patterns
                .filter_map(|(pattern, part)| Some((regexp::search_pattern(pattern)?, Schema::of(part))))
                .collect(),
            dependencies: dependencies.filter_map(|(name, part)| Some((name.to_vec(), dependency(part)?))).collect(),
            more_properties: members.others("additionalProperties"),
            properties_count: members.range("minProperties", "maxProperties"),
            items: match members.get("items").map(Json::of) {
                Some(Json::Array(parts)) => {
                    Items::Tuple(parts.into_iter().map(Schema::of).collect(), members.others("additionalItems"))
                }
                _ => match members.schema("items") {
                    Some(schema) => Items::Of(Box::new(schema)),
                    None => Items::Tuple(Vec::new(), Others::Allowed),
                },
            },
            items_count: members.range("minItems", "maxItems"),
            unique_items: members.is_true("uniqueItems"),
            characters: members.range("minLength", "maxLength"),
            pattern: members.string("pattern").and_then(regexp::search_pattern),
            minimum: members.limit("minimum", "exclusiveMinimum"),
            maximum: members.limit("maximum", "exclusiveMaximum"),
            multiple_of: members.number("multipleOf").filter(|number| double(number) > 0.0),
        }
    }

    /// Why a document does not fit; `None` if it does. Errors: those of a match of a regular expression.
    pub fn misfit(&self, document: &[u8]) -> Result<Option<Misfit>> {
        match self.test(document) {
            Ok(()) => Ok(None),
            Err(Stop::Misfit(misfit)) => Ok(Some(*misfit)),
            Err(Stop::Error(error)) => Err(error),
        }
    }

    fn fits(&self, value: &[u8]) -> std::result::Result<bool, Stop> {
        match self.test(value) {
            Ok(()) => Ok(true),
            Err(Stop::Misfit(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn test(&self, value: &[u8]) -> Test {
        let json = Json::of(value);
        require(self.types & types_of(json) != 0, "type")?;
        match json {
            Json::Object(members) => self.test_object(members)?,
            Json::Array(elements) => {
                let elements: Vec<&[u8]> = elements.into_iter().collect();
                self.test_array(&elements)?;
            }
            Json::Int(_) | Json::UInt(_) | Json::Double(_) | Json::Decimal(_) => self.test_number(value)?,
            Json::String(text) => self.test_text(text)?,
            Json::Temporal(_) | Json::Opaque { .. } => {
                let mut quoted = Vec::new();
                json::append_text(value, &mut quoted);
                self.test_text(&quoted[1..quoted.len() - 1])?;
            }
            Json::Null | Json::Boolean(_) => {}
        }
        let is_chosen = |choice: &Vec<u8>| compare(choice, value).is_eq();
        require(self.choices.is_empty() || self.choices.iter().any(is_chosen), "enum")?;
        for schema in &self.all_of {
            require(schema.fits(value)?, "allOf")?;
        }
        let mut fitting = false;
        for schema in &self.any_of {
            fitting = fitting || schema.fits(value)?;
        }
        require(self.any_of.is_empty() || fitting, "anyOf")?;
        let mut count = 0;
        for schema in &self.one_of {
            count += usize::from(schema.fits(value)?);
        }
        require(self.one_of.is_empty() || count == 1, "oneOf")?;
        match &self.not {
            Some(schema) => require(!schema.fits(value)?, "not"),
            None => Ok(()),
        }
    }

    fn test_object(&self, members: Members<'_>) -> Test {
        for (key, value) in members {
            self.test_member(key, value).map_err(|stop| stop.at_value(&String::from_utf8_lossy(key)))?;
        }
        let is_here = |key: &Vec<u8>| members.get(key).is_some();
        require(self.required.iter().all(is_here), "required")?;
        require(members.len() >= self.properties_count.0, "minProperties")?;
        require(members.len() <= self.properties_count.1, "maxProperties")?;
        for (key, dependency) in &self.dependencies {
            if !is_here(key) {
                continue;
            }
            let is_met = match dependency {
                Dependency::Properties(wanted) => wanted.iter().all(is_here),
                Dependency::Schema(schema) => {
                    let mut object = Vec::new();
                    Json::Object(members).append(&mut object);
                    schema.fits(&object)?
                }
            };
            require(is_met, "dependencies")?;
        }
        Ok(())
    }

    fn test_member(&self, key: &[u8], value: &[u8]) -> Test {
        let text = String::from_utf8_lossy(key);
        let mut matching = Vec::new();
        for (pattern, schema) in &self.patterns {
            if regexp::is_found(pattern, &text).map_err(Stop::Error)? {
                matching.push(schema);
            }
        }
        let property = self.properties.iter().find(|(name, _)| name == key).map(|(_, schema)| schema);
        let fits_all = |schemas: &[&Schema]| {
            for schema in schemas {
                if !schema.fits(value)? {
                    return Ok::<bool, Stop>(false);
                }
            }
            Ok(true)
        };
        if matching.is_empty() {
            return match (property, &self.more_properties) {
                (Some(schema), _) => schema.test(value).map_err(|stop| stop.at_schema(&["properties", &text])),
                // A property that another keyword names is not an additional one.
                _ if self.is_named(key) => Ok(()),
                (None, Others::Of(schema)) => {
                    schema.test(value).map_err(|stop| stop.at_schema(&["additionalProperties"]))
                }
                (None, Others::Allowed) => Ok(()),
                (None, Others::Forbidden) => require(false, "additionalProperties"),
            };
        }
        let fits = match (property, &self.more_properties) {
            (Some(schema), _) => fits_all(&matching)? && schema.fits(value)?,
            // As in MySQL's validator, either suffices.
            (None, Others::Of(schema)) if !self.is_named(key) => fits_all(&matching)? || schema.fits(value)?,
            _ => fits_all(&matching)?,
        };
        // MySQL's validator reports the schema of any value as the place.
        if fits { Ok(()) } else { Err(misfit("patternProperties").at_root()) }
    }

    /// Whether `required` or `dependencies` have the name.
    fn is_named(&self, key: &[u8]) -> bool {
        let depends = |(name, dependency): &(Vec<u8>, Dependency)| {
            let names = match dependency {
                Dependency::Properties(names) => &names[..],
                Dependency::Schema(_) => &[],
            };
            name == key || names.iter().any(|name| name == key)
        };
        self.required.iter().any(|name| name == key) || self.dependencies.iter().any(depends)
    }

    fn test_array(&self, elements: &[&[u8]]) -> Test {
        let repeated = if self.unique_items { first_repeated(elements) } else { None };
        for (position, element) in elements.iter().enumerate() {
            let tested = match &self.items {
                Items::Of(schema) => schema.test(element).map_err(|stop| stop.at_schema(&["items"])),
                Items::Tuple(schemas, others) => match (schemas.get(position), others) {
                    (Some(schema), _) => {
                        schema.test(element).map_err(|stop| stop.at_schema(&["items", &position.to_string()]))
                    }
                    (None, Others::Allowed) => Ok(()),
                    (None, Others::Of(schema)) => {
                        schema.test(element).map_err(|stop| stop.at_schema(&["additionalItems"]))
                    }
                    (None, Others::Forbidden) => require(false, "items"),
                },
            };
            let tested = tested.and_then(|()| require(repeated != Some(position), "uniqueItems"));
            tested.map_err(|stop| stop.at_value(&position.to_string()))?;
        }
        require(elements.len() >= self.items_count.0, "minItems")?;
        require(elements.len() <= self.items_count.1, "maxItems")
    }

    fn test_text(&self, text: &[u8]) -> Test {
        let text = String::from_utf8_lossy(text);
        if self.characters != (0, usize::MAX) {
            let count = text.chars().count();
            require(count >= self.characters.0, "minLength")?;
            require(count <= self.characters.1, "maxLength")?;
        }
        match &self.pattern {
            Some(pattern) => require(regexp::is_found(pattern, &text).map_err(Stop::Error)?, "pattern"),
            None => Ok(()),
        }
    }

    fn test_number(&self, value: &[u8]) -> Test {
        if let Some((limit, is_excluded)) = &self.minimum {
            let order = compare(value, limit);
            require(order.is_gt() || order.is_eq() && !is_excluded, "minimum")?;
        }
        if let Some((limit, is_excluded)) = &self.maximum {
            let order = compare(value, limit);
            require(order.is_lt() || order.is_eq() && !is_excluded, "maximum")?;
        }
        match &self.multiple_of {
            Some(divisor) => require(is_multiple(value, divisor), "multipleOf"),
            None => Ok(()),
        }
    }
}

impl Misfit {
    /// The place of the keyword's schema, as the fragment of a URI.
    pub fn schema_location(&self) -> String {
        fragment(&self.schema)
    }

    /// The place of the value, as the fragment of a URI.
    pub fn document_location(&self) -> String {
        fragment(&self.document)
    }

    /// The sentence for people.
    pub fn reason(&self) -> String {
        let (document, schema, keyword) = (self.document_location(), self.schema_location(), self.keyword);
        format!(
            "The JSON document location '{document}' failed requirement '{keyword}' at JSON Schema location '{schema}'"
        )
    }
}

impl Stop {
    fn at_value(mut self, name: &str) -> Stop {
        if let Stop::Misfit(misfit) = &mut self {
            misfit.document.push(name.to_owned());
        }
        self
    }

    fn at_schema(mut self, names: &[&str]) -> Stop {
        if let Stop::Misfit(misfit) = &mut self
            && misfit.schema.last().is_none_or(|name| name != ROOT)
        {
            misfit.schema.extend(names.iter().rev().map(|name| (*name).to_owned()));
        }
        self
    }

    fn at_root(mut self) -> Stop {
        if let Stop::Misfit(misfit) = &mut self {
            misfit.schema.push(ROOT.to_owned());
        }
        self
    }
}

/// Stands in the place of the way to a schema that has none. No name contains NUL.
const ROOT: &str = "\0";

fn misfit(keyword: &'static str) -> Stop {
    Stop::Misfit(Box::new(Misfit { keyword, schema: Vec::new(), document: Vec::new() }))
}

fn require(is_met: bool, keyword: &'static str) -> Test {
    if is_met { Ok(()) } else { Err(misfit(keyword)) }
}

/// The members of a schema; `None` has none.
#[derive(Clone, Copy)]
struct Keywords<'d>(Option<Members<'d>>);

impl<'d> Keywords<'d> {
    fn get(self, key: &str) -> Option<&'d [u8]> {
        self.0?.get(key.as_bytes())
    }

    fn array(self, key: &str) -> Vec<&'d [u8]> {
        match self.get(key).map(Json::of) {
            Some(Json::Array(elements)) => elements.into_iter().collect(),
            _ => Vec::new(),
        }
    }

    fn object(self, key: &str) -> Vec<(&'d [u8], &'d [u8])> {
        match self.get(key).map(Json::of) {
            Some(Json::Object(members)) => members.into_iter().collect(),
            _ => Vec::new(),
        }
    }

    fn schema(self, key: &str) -> Option<Schema> {
        let part = self.get(key)?;
        matches!(Json::of(part), Json::Object(_)).then(|| Schema::of(part))
    }

    fn string(self, key: &str) -> Option<&'d [u8]> {
        match Json::of(self.get(key)?) {
            Json::String(text) => Some(text),
            _ => None,
        }
    }

    fn strings(self, key: &str) -> Vec<Vec<u8>> {
        self.array(key).into_iter().filter_map(name_of).collect()
    }

    fn is_true(self, key: &str) -> bool {
        self.get(key).is_some_and(|part| Json::of(part) == Json::Boolean(true))
    }

    fn number(self, key: &str) -> Option<Vec<u8>> {
        let part = self.get(key)?;
        (types_of(Json::of(part)) & NUMBER != 0).then(|| part.to_vec())
    }

    fn limit(self, key: &str, excludes: &str) -> Option<(Vec<u8>, bool)> {
        self.number(key).map(|limit| (limit, self.is_true(excludes)))
    }

    /// A minimum and a maximum count.
    fn range(self, least: &str, most: &str) -> (usize, usize) {
        let count = |key| match self.get(key).map(Json::of) {
            Some(Json::Int(count)) => usize::try_from(count).ok(),
            Some(Json::UInt(count)) => usize::try_from(count).ok(),
            _ => None,
        };
        (count(least).unwrap_or(0), count(most).unwrap_or(usize::MAX))
    }

    fn others(self, key: &str) -> Others {
        match self.get(key).map(Json::of) {
            Some(Json::Boolean(false)) => Others::Forbidden,
            Some(Json::Object(_)) => self.schema(key).map_or(Others::Allowed, |schema| Others::Of(Box::new(schema))),
            _ => Others::Allowed,
        }
    }

    /// The bits of `type`. A name that is none has no bit.
    fn types(self) -> u8 {
        let bit = |part: &[u8]| match Json::of(part) {
            Json::String(b"null") => NULL,
            Json::String(b"boolean") => BOOLEAN,
            Json::String(b"object") => OBJECT,
            Json::String(b"array") => ARRAY,
            Json::String(b"string") => STRING,
            Json::String(b"integer") => INTEGER,
            Json::String(b"number") => NUMBER,
            _ => 0,
        };
        match self.get("type") {
            None => ANY,
            Some(part) => match Json::of(part) {
                Json::Array(names) => names.into_iter().fold(0, |bits, name| bits | bit(name)),
                _ => bit(part),
            },
        }
    }
}

/// The types that a value has. Only a number that is written without point and exponent is an integer.
fn types_of(json: Json<'_>) -> u8 {
    match json {
        Json::Null => NULL,
        Json::Boolean(_) => BOOLEAN,
        Json::Object(_) => OBJECT,
        Json::Array(_) => ARRAY,
        Json::String(_) | Json::Temporal(_) | Json::Opaque { .. } => STRING,
        Json::Int(_) | Json::UInt(_) => INTEGER | NUMBER,
        Json::Decimal(value) if value.scale() == 0 => INTEGER | NUMBER,
        Json::Double(_) | Json::Decimal(_) => NUMBER,
    }
}

fn dependency(part: &[u8]) -> Option<Dependency> {
    match Json::of(part) {
        Json::Array(names) => Some(Dependency::Properties(names.into_iter().filter_map(name_of).collect())),
        Json::Object(_) => Some(Dependency::Schema(Box::new(Schema::of(part)))),
        _ => None,
    }
}

fn name_of(part: &[u8]) -> Option<Vec<u8>> {
    match Json::of(part) {
        Json::String(text) => Some(text.to_vec()),
        _ => None,
    }
}

/// Whether an object in the document has the member `$ref` with a string.
fn has_reference(document: &[u8]) -> bool {
    match Json::of(document) {
        Json::Array(elements) => elements.into_iter().any(has_reference),
        Json::Object(members) => {
            members.into_iter().any(|(key, part)| key == b"$ref" && name_of(part).is_some() || has_reference(part))
        }
        _ => false,
    }
}

/// The position of the first element that is equal to one before it.
fn first_repeated(elements: &[&[u8]]) -> Option<usize> {
    let mut order: Vec<usize> = (0..elements.len()).collect();
    // A stable sort keeps equal elements in their order.
    order.sort_by(|left, right| compare(elements[*left], elements[*right]));
    let pairs = order.windows(2);
    pairs.filter(|pair| compare(elements[pair[0]], elements[pair[1]]).is_eq()).map(|pair| pair[1]).min()
}

fn double(number: &[u8]) -> f64 {
    Json::of(number).as_scalar().and_then(|value| value.to_double().ok()).unwrap_or(0.0)
}

fn is_multiple(value: &[u8], divisor: &[u8]) -> bool {
    let integer = |number| match Json::of(number) {
        Json::Int(value) => Some(i128::from(value)),
        Json::UInt(value) => Some(i128::from(value)),
        _ => None,
    };
    if let (Some(value), Some(divisor)) = (integer(value), integer(divisor)) {
        return divisor != 0 && value % divisor == 0;
    }
    let (value, divisor) = (double(value).abs(), double(divisor).abs());
    value - divisor * (value / divisor).floor() <= 0.0
}

/// Names on a way, the last first, as the fragment of a URI with a JSON pointer.
fn fragment(names: &[String]) -> String {
    let mut out = String::from("#");
    for name in names.iter().rev().filter(|name| *name != ROOT) {
        out.push('/');
        for byte in name.bytes() {
            match byte {
                b'~' => out.push_str("~0"),
                b'/' => out.push_str("~1"),
                b'-' | b'.' | b'_' => out.push(byte.into()),
                _ if byte.is_ascii_alphanumeric() => out.push(byte.into()),
                _ => out.push_str(&format!("%{byte:02X}")),
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(text: &str) -> Vec<u8> {
        let mut document = Vec::new();
        json::parse(text.as_bytes(), &mut document).unwrap_or_else(|error| panic!("{text}: {error:?}"));
        document
    }

    /// The keyword and the two places, or nothing for a value that fits.
    fn answer(schema: &str, value: &str) -> String {
        let schema = Schema::read(&document(schema)).unwrap_or_else(|error| panic!("{}", error.message));
        match schema.misfit(&document(value)).expect("no pattern fails") {
            None => String::new(),
            Some(found) => format!("{} {} {}", found.keyword, found.document_location(), found.schema_location()),
        }
    }

    #[test]
    fn each_keyword_is_tested_at_its_place() {
        for (schema, fitting, other, expected) in [
            (r#"{"type": "integer"}"#, "1", "1.0", "type # #"),
            (r#"{"type": ["null", "string"]}"#, "null", "[]", "type # #"),
            (r#"{"enum": [1, [2]]}"#, "[2]", "[3]", "enum # #"),
            (r#"{"minimum": -90}"#, "-90", "-90.5", "minimum # #"),
            (r#"{"minimum": 1, "exclusiveMinimum": true}"#, "1.5", "1", "minimum # #"),
            (r#"{"maximum": 1.5}"#, "1.5", "2", "maximum # #"),
            (r#"{"maximum": 5, "exclusiveMaximum": true}"#, "4", "5", "maximum # #"),
            (r#"{"multipleOf": 3}"#, "-9", "10", "multipleOf # #"),
            (r#"{"multipleOf": 0.5}"#, "1.5", "1.7", "multipleOf # #"),
            (r#"{"minLength": 2}"#, "\"äö\"", "\"ä\"", "minLength # #"),
            (r#"{"maxLength": 2}"#, "\"äö\"", "\"abc\"", "maxLength # #"),
            (r#"{"pattern": "[5-9]$"}"#, "\"a8\"", "\"8a\"", "pattern # #"),
            (r#"{"required": ["a"]}"#, r#"{"a": null}"#, "{}", "required # #"),
            (r#"{"minProperties": 1}"#, r#"{"a": 1}"#, "{}", "minProperties # #"),
            (r#"{"maxProperties": 1}"#, r#"{"a": 1}"#, r#"{"a": 1, "b": 1}"#, "maxProperties # #"),
            (
                r#"{"properties": {"a/b c": {"type": "null"}}}"#,
                "{}",
                r#"{"a/b c": 1}"#,
                "type #/a~1b%20c #/properties/a~1b%20c",
            ),
            (
                r#"{"properties": {"a": {}}, "additionalProperties": false}"#,
                r#"{"a": 1}"#,
                r#"{"b": 1}"#,
                "additionalProperties #/b #",
            ),
            (
                r#"{"additionalProperties": {"type": "string"}}"#,
                r#"{"a": "x"}"#,
                r#"{"a": 1}"#,
                "type #/a #/additionalProperties",
            ),
            (
                r#"{"patternProperties": {"^a": {"type": "string"}}}"#,
                r#"{"b": 1}"#,
                r#"{"ab": 1}"#,
                "patternProperties #/ab #",
            ),
            (r#"{"dependencies": {"a": ["b"]}}"#, r#"{"a": 1, "b": 2}"#, r#"{"a": 1}"#, "dependencies # #"),
            (
                r#"{"dependencies": {"a": {"maxProperties": 1}}}"#,
                r#"{"a": 1}"#,
                r#"{"a": 1, "b": 1}"#,
                "dependencies # #",
            ),
            (r#"{"items": {"type": "integer"}}"#, "[1, 2]", "[1, \"x\"]", "type #/1 #/items"),
            (r#"{"items": [{}, {"type": "null"}]}"#, "[1, null, 3]", "[1, 2]", "type #/1 #/items/1"),
            (r#"{"items": [{}], "additionalItems": false}"#, "[1]", "[1, 2]", "items #/1 #"),
            (
                r#"{"items": [{}], "additionalItems": {"type": "null"}}"#,
                "[1, null]",
                "[1, 2]",
                "type #/1 #/additionalItems",
            ),
            (r#"{"minItems": 1}"#, "[1]", "[]", "minItems # #"),
            (r#"{"maxItems": 1}"#, "[1]", "[1, 2]", "maxItems # #"),
            (r#"{"uniqueItems": true}"#, "[1, 2]", "[1, 2, 1, 2]", "uniqueItems #/2 #"),
            (r#"{"allOf": [{"minimum": 1}, {"maximum": 3}]}"#, "2", "4", "allOf # #"),
            (r#"{"anyOf": [{"type": "null"}, {"minimum": 3}]}"#, "3", "2", "anyOf # #"),
            (r#"{"oneOf": [{"minimum": 1}, {"minimum": 3}]}"#, "2", "3", "oneOf # #"),
            (r#"{"not": {"type": "string"}}"#, "1", "\"x\"", "not # #"),
        ] {
            assert_eq!(answer(schema, fitting), "", "{schema} of {fitting}");
            assert_eq!(answer(schema, other), expected, "{schema} of {other}");
        }
    }

    #[test]
    fn places_lead_through_objects_and_arrays() {
        let schema = r#"{"properties": {"a": {"items": {"properties": {"b": {"minimum": 5}}}}}}"#;
        assert_eq!(
            answer(schema, r#"{"a": [{"b": 7}, {"b": 1}]}"#),
            "minimum #/a/1/b #/properties/a/items/properties/b"
        );
    }

    #[test]
    fn keywords_with_wrong_values_are_ignored() {
        for schema in [
            r#"{"pattern": "("}"#,
            r#"{"minimum": "x", "required": "a", "enum": [], "multipleOf": 0}"#,
            r#"{"items": 1, "properties": [], "maxLength": -1}"#,
            r#"{"properties": {"a": 1}, "format": "email", "$schema": "x"}"#,
        ] {
            assert_eq!(answer(schema, r#"{"a": 1}"#), "", "{schema}");
            assert_eq!(answer(schema, "\"b\""), "", "{schema}");
        }
    }

    #[test]
    fn a_type_that_is_none_fits_nothing() {
        assert_eq!(answer(r#"{"type": "object-object"}"#, "{}"), "type # #");
    }

    #[test]
    fn a_required_property_is_not_an_additional_one() {
        assert_eq!(answer(r#"{"required": ["a"], "additionalProperties": false}"#, r#"{"a": 1}"#), "");
    }

    #[test]
    fn references_are_refused() {
        let schema = document(r#"{"properties": {"$ref": "http://example.com"}}"#);
        assert_eq!(Schema::read(&schema).expect_err("it has a reference").code.errno(), 1235);
    }
}
