"""What a statement's expressions are made of: the families of operands, and whether they are well-formed days and
times. Reasons in excuses.py ask for them."""

import ast
import re

from columns import DATES, MOMENTS, TIMES
from functions import SIGNATURES
from tree import Form, Literal, Many, Words

NUMBERS = {"integer", "decimal", "double"}
MOMENTS_AND_DAYS = {"date", "moment", "timestamp"}
# Families whose values mean the same.
SAME = {"timestamp": "moment", "integer": "number", "decimal": "number", "double": "number"}
RESULTS = {
    **dict.fromkeys(["compare", "BETWEEN", "IN", "logic", "IS", "LIKE", "RLIKE"], "integer"), **dict.fromkeys(["&", "|", "^", "~", "<<", ">>"], "integer"),
    **dict.fromkeys(["+", "-", "*", "/", "DIV", "%", "neg", "MOD", "ABS", "CEIL", "CEILING", "FLOOR", "ROUND", "TRUNCATE", "SUM", "AVG"], "number"),
    "COLLATE": "text", "CONVERT USING": "text", "SOUNDEX": "text", "GROUP_CONCAT": "text", "COUNT": "integer", "BIT_AND": "integer", "BIT_OR": "integer", "BIT_XOR": "integer",
    **dict.fromkeys(["STD", "STDDEV_POP", "STDDEV_SAMP", "VARIANCE", "VAR_POP", "VAR_SAMP"], "double"),
    "CAST SIGNED": "integer", "CAST UNSIGNED": "integer", "CAST CHAR": "text", "CAST BINARY": "bytes", "CAST DATE": "date", "CAST TIME": "time", "CAST DATETIME": "moment", "CAST DECIMAL": "decimal", "CAST DOUBLE": "double",
    "CAST FLOAT": "double",
}
# Functions that give one of some operands, with the first of them.
ONE_OF = {"COALESCE": 0, "IFNULL": 0, "IF": 1, "CASE": 1, "LEAST": 0, "GREATEST": 0, "MIN": 0, "MAX": 0}
# MySQL computes with them as texts, whatever the operands are.
OPEN = {"ADDTIME", "SUBTIME", "DATE_ADD", "DATE_SUB", "INTERVAL", "STR_TO_DATE"}
# Maximum length of a difference in which values are looked for.
LONG = 100_000
VALUE = re.compile(r"""value: row \d+: (?P<own>None|b'(?:[^'\\]|\\.)*'|b"(?:[^"\\]|\\.)*"), theirs (?P<other>None|b'(?:[^'\\]|\\.)*'|b"(?:[^"\\]|\\.)*")$""", re.DOTALL)


def pair(found):
    """Both values of a difference as bytes or `None`; `None` if the difference is no value."""
    match = VALUE.match(found) if len(found) < LONG else None
    return match and (ast.literal_eval(match["own"]), ast.literal_eval(match["other"]))


def inner(found):
    """Both values of a difference as Python shows them, without quotes; fewer if one is NULL."""
    match = VALUE.match(found) if len(found) < LONG else None
    return [text[2:-1] for text in match.groups() if text != "None"] if match else []


def numbers(found):
    """Both values of a difference as texts of numbers, or `None`."""
    both = pair(found)
    if both is None or None in both or not all(re.fullmatch(rb"-?\d+(\.\d*)?(e[-+]?\d+)?", value) for value in both):
        return None
    return both[0].decode(), both[1].decode()


def nodes(root, names=None):
    """The forms of a tree, all or those with some names."""
    open_nodes = [root]
    while open_nodes:
        node = open_nodes.pop()
        if isinstance(node, Form) and (names is None or node.name in names):
            yield node
        open_nodes += node.children()


def leaves(root):
    """The literals and columns of a tree."""
    open_nodes = [root]
    while open_nodes:
        node = open_nodes.pop()
        if not node.children():
            yield node
        open_nodes += node.children()


def family(node):
    """The family of an expression's values; `hex` and `null` for such literals, `unknown` if the servers decide by the
    value."""
    if isinstance(node, Literal):
        if node.family:
            return node.family
        if node.text.startswith("0x"):
            return "hex"
        if node.text == "NULL":
            return "null"
        if node.text.startswith("'"):
            return "text"
        return "double" if "e" in node.text else "decimal" if "." in node.text else "integer"
    if isinstance(node, Words):
        return node.family or "unknown"
    if not isinstance(node, Form):
        return "unknown"
    if node.name == "NULLIF":
        # The second operand is only compared.
        return family(node.operands[0])
    if node.name in ONE_OF:
        found = {family(operand) for operand in node.operands[ONE_OF[node.name]:]} - {"null"}
        return found.pop() if len(found) == 1 else "unknown"
    if node.name in RESULTS:
        return RESULTS[node.name]
    if node.name in OPEN:
        # INTERVAL is also a function of integers.
        return "integer" if node.pattern.startswith("INTERVAL(") else "unknown"
    return SIGNATURES.get(node.name, ("unknown",))[0]


def families_of(root, names):
    """The families of the operands of each form with one of the names."""
    return [[family(operand) for operand in node.operands] for node in nodes(root, names)]


def unlike(root, names):
    """Whether a form with one of the names has operands of different kinds."""
    for found in families_of(root, names):
        kinds = {SAME.get(kind, kind) for kind in found} - {"null"}
        if len(kinds) > 1 or kinds & {"unknown", "hex", "year", "choice"}:
            return True
    return False


def has_operand(root, names, families):
    """Whether a form with one of the names has an operand of one of the families."""
    return any(set(found) & set(families) for found in families_of(root, names))


def is_day(node):
    """Whether a literal is a well-formed day, with or without a time."""
    text = node.text.strip("'") if isinstance(node, Literal) else ""
    return isinstance(node, Literal) and (node.family in MOMENTS_AND_DAYS or node.text.startswith("'") and text in DATES + MOMENTS)


def is_time(node):
    text = node.text.strip("'") if isinstance(node, Literal) else ""
    return isinstance(node, Literal) and (node.family == "time" or node.text.startswith("'") and text in TIMES)


def is_clean(node, wanted):
    """Whether an operand is certainly a well-formed value of the family that a function wants: `time`, or a day."""
    if isinstance(node, Literal):
        return node.text == "NULL" or (is_time(node) if wanted == "time" else is_day(node))
    found = family(node)
    if isinstance(node, Words):
        return found == "time" if wanted == "time" else found in MOMENTS_AND_DAYS
    if isinstance(node, Form) and node.name in OPEN | {"SEC_TO_TIME", "FROM_UNIXTIME", "FROM_DAYS", "CONVERT_TZ", "MAKEDATE", "MAKETIME", "TIMEDIFF", "TIMESTAMP", "DATE", "TIME", "LAST_DAY"}:
        return False
    return found == "time" if wanted == "time" else found in MOMENTS_AND_DAYS


def has_fraction(node, kinds):
    """Whether an operand may have a fraction of a second."""
    if isinstance(node, Literal):
        return "." in node.text
    if isinstance(node, Words):
        kind = kinds.get(node.text, "")
        return not re.match(r"(DATE|YEAR|(TIME|DATETIME|TIMESTAMP)(\(0\))?)$", kind)
    return True
