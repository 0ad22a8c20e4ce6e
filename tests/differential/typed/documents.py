"""MySQL's JSON functions of constants, as far as the tester draws them. Where MariaDB differs, excuses.py asks whether
Junctor's answer is the one computed here. A value is what json.loads gives for its text, `None` is the document
null, and `SQL_NULL` is NULL."""

import base64
import json
import re
from decimal import Decimal

from tree import Form, Literal

SQL_NULL = object()
# The values of a document that are numbers, but true and false are not.
NUMBERS = (int, float, Decimal)
# MySQL's code of VARCHAR, of which binary strings in documents are.
VARCHAR = 15
ESCAPED = {"\\": "\\", "'": "'", '"': '"', "n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "Z": "\x1a"}


# The escapes in force; `None` with NO_BACKSLASH_ESCAPES.
active_escapes = ESCAPED


class Unknown(Exception):
    """An operand is no constant, or its value is an error."""


class Text(str):
    """A SQL text, in distinction from a string of a document."""


def expected(node):
    """The value of a JSON function by MySQL's rules: a document, a `Text`, an integer or `SQL_NULL`."""
    if not isinstance(node, Form) or node.name not in FUNCTIONS:
        raise Unknown
    operands = node.operands
    return FUNCTIONS[node.name](*[value_of(operand) for operand in operands])


def value_of(node):
    """The value of an operand: as `expected`, and numbers."""
    if isinstance(node, Form):
        return expected(node)
    if not isinstance(node, Literal):
        raise Unknown
    text = node.text
    if text == "NULL":
        return SQL_NULL
    if node.family in ("date", "time", "moment"):
        return Moment(text[text.index("'") + 1:-1], node.family)
    if text.startswith("0x"):
        return bytes.fromhex(text[2:])
    if text.startswith("'"):
        inner = text[1:-1].replace("''", "'")
        if active_escapes is None:
            return Text(inner)
        return Text(re.sub(r"\\(.)", lambda match: active_escapes.get(match[1], match[1]), inner, flags=re.DOTALL))
    return float(text) if "e" in text else Decimal(text) if "." in text else int(text)


class Moment:
    """A day or time of SQL."""

    def __init__(self, text, family):
        self.text, self.family = text, family

    def string(self):
        """Its string in a document, which has six digits of the fraction."""
        if self.family == "date":
            return self.text
        whole, _, fraction = self.text.partition(".")
        return f"{whole}.{fraction.ljust(6, '0')}"


def scalar(value):
    """A SQL value as a document."""
    if value is SQL_NULL:
        return None
    if isinstance(value, Text):
        return str(value)
    if isinstance(value, Moment):
        return value.string()
    if isinstance(value, bytes):
        return f"base64:type{VARCHAR}:{base64.b64encode(value).decode()}"
    return value


def document(value):
    """An operand that must be a document or the text of one."""
    if value is SQL_NULL or not isinstance(value, (Text, *NUMBERS, Moment, bytes)):
        return value
    if not isinstance(value, Text):
        raise Unknown
    return parsed(value)


def parsed(text):
    """The document of a text. `Unknown` for another text, which is an error."""
    try:
        value = json.loads(text, parse_constant=refused, parse_float=finite, object_pairs_hook=in_order)
    except ValueError:
        raise Unknown from None
    return value


def refused(text):
    raise ValueError(text)


def finite(text):
    """The double of a text; beyond the range it is an error."""
    value = float(text)
    return value if abs(value) != float("inf") else refused(text)


def in_order(members):
    """The members of an object by the length of their names."""
    members = dict(members)
    return {key: members[key] for key in sorted(members, key=order_of_name)}


def order_of_name(name):
    return len(name.encode()), name.encode()


class Document:
    """What a function gives as JSON, so that another one does not take it for a text."""

    def __init__(self, value):
        self.value = value


def legs(path):
    """The legs of a path: names, positions, `last`, `*`, `**`."""
    if path is SQL_NULL:
        return SQL_NULL
    if not isinstance(path, Text) or not path.startswith("$"):
        raise Unknown
    return [name or ("**" if wild == "**" else position if position == "last" else int(position) if position.isdigit() else "*") for name, wild, position in re.findall(r"\.(\w+|\*)|(\*\*)|\[(\w+)\]", path) for name in ["." + name if name and name != "*" else ".*" if name else ""]]


def found(value, path):
    """The parts of a document at a path."""
    parts = [value]
    for leg in path:
        following = []
        for part in parts:
            if leg == "**":
                following += descendants(part)
            elif leg == ".*":
                following += list(part.values()) if isinstance(part, dict) else []
            elif isinstance(leg, str) and leg.startswith("."):
                following += [part[leg[1:]]] if isinstance(part, dict) and leg[1:] in part else []
            elif isinstance(part, list):
                position = len(part) - 1 if leg == "last" else leg
                following += [part[position]] if 0 <= position < len(part) else []
            elif leg in (0, "last"):
                following.append(part)
        parts = following
    return parts


def descendants(value):
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [value] + [deep for each in inner for deep in descendants(each)]


def is_many(path):
    return any(leg in ("**", ".*") for leg in path)


def opened(value):
    value = value.value if isinstance(value, Document) else value
    return document(value)


def inner(value):
    """A SQL value or a document as a part of another one."""
    return value.value if isinstance(value, Document) else scalar(value)


def extract(value, *paths):
    value, paths = opened(value), [legs(path) for path in paths]
    if value is SQL_NULL or SQL_NULL in paths:
        return SQL_NULL
    parts = [part for path in paths for part in found(value, path)]
    if not parts:
        return SQL_NULL
    return Document(parts if len(paths) > 1 or is_many(paths[0]) else parts[0])


def same(left, right):
    """Whether two documents are equal: true is not 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, NUMBERS) and isinstance(right, NUMBERS):
        return left == right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    return type(left) is type(right) and left == right


def contained(candidate, target):
    if isinstance(target, list):
        if isinstance(candidate, list):
            return all(any(contained(each, part) for part in target) for each in candidate)
        return any(contained(candidate, part) for part in target)
    if isinstance(target, dict) and isinstance(candidate, dict):
        return all(key in target and contained(candidate[key], target[key]) for key in candidate)
    return same(candidate, target)


def contains(target, candidate, path=None):
    target, candidate = opened(target), opened(candidate)
    if SQL_NULL in (target, candidate) or path is SQL_NULL:
        return SQL_NULL
    if path is not None:
        parts = found(target, single(path))
        if not parts:
            return SQL_NULL
        target = parts[0]
    return int(contained(candidate, target))


def single(path):
    """The legs of a path without wildcards; an error otherwise."""
    path = legs(path)
    if path is SQL_NULL or is_many(path):
        raise Unknown
    return path


def contains_path(value, mode, *paths):
    # The document is read first, and may be wrong.
    value = opened(value)
    if value is SQL_NULL or mode is SQL_NULL:
        return SQL_NULL
    if not isinstance(mode, Text) or mode.lower() not in ("one", "all"):
        raise Unknown
    paths = [legs(path) for path in paths]
    if SQL_NULL in paths:
        return SQL_NULL
    present = [bool(found(value, path)) for path in paths]
    return int(any(present) if mode.lower() == "one" else all(present))


def at(value, path, function):
    """The document with the part at a path replaced by what `function` makes of it; unchanged if there is none."""
    if not path:
        return function(value)
    leg, rest = path[0], path[1:]
    if isinstance(leg, str) and leg.startswith("."):
        if isinstance(value, dict) and leg[1:] in value:
            return {**value, leg[1:]: at(value[leg[1:]], rest, function)}
        return value
    if not isinstance(value, list):
        return at(value, rest, function) if leg in (0, "last") else value
    position = len(value) - 1 if leg == "last" else leg
    if 0 <= position < len(value):
        return value[:position] + [at(value[position], rest, function)] + value[position + 1:]
    return value


def append(value, path, added):
    value, path = opened(value), legs(path)
    if SQL_NULL in (value, path):
        return SQL_NULL
    if is_many(path):
        raise Unknown
    return Document(at(value, path, lambda part: (part if isinstance(part, list) else [part]) + [inner(added)]))


def changed(value, path, new, inserts, replaces):
    value, path = opened(value), legs(path)
    if SQL_NULL in (value, path):
        return SQL_NULL
    if is_many(path):
        raise Unknown
    if found(value, path):
        return Document(at(value, path, lambda _: inner(new)) if replaces else value)
    if not inserts:
        return Document(value)
    last = path[-1]

    def insert(part):
        if isinstance(last, str) and last.startswith("."):
            return {**part, last[1:]: inner(new)} if isinstance(part, dict) else part
        return part + [inner(new)] if isinstance(part, list) else [part, inner(new)]

    return Document(at(value, path[:-1], insert))


def remove(value, path):
    value, path = opened(value), legs(path)
    if SQL_NULL in (value, path):
        return SQL_NULL
    if is_many(path) or not path:
        raise Unknown
    if not found(value, path):
        return Document(value)
    last = path[-1]

    def without(part):
        if isinstance(part, dict):
            return {key: each for key, each in part.items() if key != last[1:]}
        if isinstance(part, list):
            position = len(part) - 1 if last == "last" else last
            return part[:position] + part[position + 1:]
        return part

    return Document(at(value, path[:-1], without))


def keys(value, path=None):
    value = opened(value)
    if value is SQL_NULL or path is SQL_NULL:
        return SQL_NULL
    if path is not None:
        parts = found(value, single(path))
        if not parts:
            return SQL_NULL
        value = parts[0]
    return Document(sorted(value, key=order_of_name)) if isinstance(value, dict) else SQL_NULL


def length(value, path=None):
    value = opened(value)
    if value is SQL_NULL or path is SQL_NULL:
        return SQL_NULL
    if path is not None:
        parts = found(value, single(path))
        if not parts:
            return SQL_NULL
        value = parts[0]
    return len(value) if isinstance(value, (list, dict)) else 1


def depth(value):
    value = opened(value)
    if value is SQL_NULL:
        return SQL_NULL
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return 1 + max((depth(Document(each)) for each in inside), default=0)


def type_name(value):
    operand, value = value, opened(value)
    if value is SQL_NULL:
        return SQL_NULL
    if not isinstance(operand, Text) and not isinstance(value, (list, dict)):
        raise Unknown
    names = {type(None): "NULL", bool: "BOOLEAN", float: "DOUBLE", str: "STRING", list: "ARRAY", dict: "OBJECT"}
    if isinstance(value, int) and not isinstance(value, bool):
        if not -2**63 <= value < 2**64:
            return Text("DOUBLE")
        return Text("UNSIGNED INTEGER" if value >= 2**63 else "INTEGER")
    return Text(names[type(value)])


def valid(value):
    if value is SQL_NULL:
        return SQL_NULL
    if isinstance(value, Document):
        return 1
    if not isinstance(value, Text):
        return 0
    try:
        parsed(value)
    except Unknown:
        return 0
    return 1


def patched(target, patch):
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        result.pop(key, None)
        if value is not None:
            result[key] = patched(target.get(key) if isinstance(target, dict) else None, value)
    return result


def merge_patch(left, right):
    # A patch that is no object is the result, whatever the target is.
    right = opened(right)
    left = opened(left)
    if right is SQL_NULL:
        return SQL_NULL
    if not isinstance(right, dict):
        return Document(right)
    return SQL_NULL if left is SQL_NULL else Document(patched(left, right))


def preserved(left, right):
    if isinstance(left, dict) and isinstance(right, dict):
        return {**left, **{key: preserved(left[key], right[key]) if key in left else right[key] for key in right}}
    return (left if isinstance(left, list) else [left]) + (right if isinstance(right, list) else [right])


def merge_preserve(left, right):
    left, right = opened(left), opened(right)
    return SQL_NULL if SQL_NULL in (left, right) else Document(preserved(left, right))


def overlaps(left, right):
    left, right = opened(left), opened(right)
    if SQL_NULL in (left, right):
        return SQL_NULL
    if isinstance(left, dict) and isinstance(right, dict):
        return int(any(key in right and same(left[key], right[key]) for key in left))
    lists = [value if isinstance(value, list) else [value] for value in (left, right)]
    return int(any(same(one, other) for one in lists[0] for other in lists[1]))


def quoted(value):
    if value is SQL_NULL:
        return SQL_NULL
    if not isinstance(value, Text):
        raise Unknown
    return Text(json.dumps(str(value), ensure_ascii=False))


def unquoted(value):
    if value is SQL_NULL:
        return SQL_NULL
    if isinstance(value, Document):
        return Text(value.value) if isinstance(value.value, str) else value
    if not isinstance(value, Text):
        raise Unknown
    if len(value) >= 2 and value[0] == value[-1] == '"':
        return Text(parsed(value))
    return value


def array(*values):
    return Document([inner(value) for value in values])


def object_of(key, value):
    if not isinstance(key, Text):
        raise Unknown
    return Document({str(key): inner(value)})


FUNCTIONS = {
    "JSON_EXTRACT": extract, "JSON_ARRAY": array, "JSON_OBJECT": object_of, "JSON_ARRAY_APPEND": append, "JSON_CONTAINS": contains, "JSON_CONTAINS_PATH": contains_path,
    "JSON_SET": lambda value, path, new: changed(value, path, new, True, True), "JSON_INSERT": lambda value, path, new: changed(value, path, new, True, False), "JSON_REPLACE": lambda value, path, new: changed(value, path, new, False, True),
    "JSON_REMOVE": remove, "JSON_KEYS": keys, "JSON_LENGTH": length, "JSON_DEPTH": depth, "JSON_TYPE": type_name, "JSON_VALID": valid, "JSON_MERGE_PATCH": merge_patch,
    "JSON_MERGE_PRESERVE": merge_preserve, "JSON_OVERLAPS": overlaps, "JSON_QUOTE": quoted, "JSON_UNQUOTE": unquoted,
}


def is_expected(node, value):
    """Whether the bytes of a value, or `None` for NULL, are what MySQL's rules give for a JSON function of constants, with
    or without NO_BACKSLASH_ESCAPES; `None` if they are not known."""
    answers = [is_expected_with(node, value, escapes) for escapes in (ESCAPED, None)]
    known = [answer for answer in answers if answer is not None]
    return any(known) if known else None


def is_expected_with(node, value, escapes):
    """As `is_expected`, with these characters behind a backslash."""
    global active_escapes
    active_escapes = escapes
    try:
        wanted = expected(node)
    except (Unknown, RecursionError, TypeError):
        return None
    finally:
        active_escapes = ESCAPED
    if wanted is SQL_NULL or value is None:
        return wanted is SQL_NULL and value is None
    if isinstance(wanted, Document):
        return is_document(wanted.value, value)
    return value == str(wanted).encode()


def is_computable(node):
    """Whether a JSON function of constants certainly has a value and no error."""
    try:
        expected(node)
    except (Unknown, RecursionError, TypeError):
        return False
    return True


def is_document(wanted, value):
    """Whether the bytes are a document's text, with its members in order."""
    pairs = []

    def members(found):
        pairs.append([key for key, _ in found])
        return dict(found)

    try:
        own = json.loads(value, object_pairs_hook=members, parse_float=Decimal)
    except ValueError:
        return False
    is_sorted = all(names == sorted(names, key=order_of_name) for names in pairs)
    return is_sorted and near(wanted, own)


def near(wanted, own):
    """Whether two documents are equal, numbers to the digits of a double."""
    if isinstance(wanted, bool) or isinstance(own, bool):
        return wanted is own
    if isinstance(wanted, NUMBERS) and isinstance(own, NUMBERS):
        return abs(float(wanted) - float(own)) <= 1e-15 * abs(float(wanted))
    if isinstance(wanted, list) and isinstance(own, list):
        return len(wanted) == len(own) and all(map(near, wanted, own))
    if isinstance(wanted, dict) and isinstance(own, dict):
        return wanted.keys() == own.keys() and all(near(wanted[key], own[key]) for key in wanted)
    return type(wanted) is type(own) and wanted == own
