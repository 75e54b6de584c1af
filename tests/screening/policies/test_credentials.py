"""Keys, tokens and passwords. Every one here is made up, and pieced together so that no scanner takes it for real."""

from __future__ import annotations

from functools import partial

import pytest

from taciturn.screening import policy
from taciturn.screening.policies import denylists, patterns
from taciturn.screening.redact import redact
from taciturn.text.document import MASK
from taciturn.text.spans import merge
from timing import in_proportion

BODY = "0Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St" * 8
HEX = "0123456789abcdef" * 4

TOKENS = [
    ("aws-key", "AKIA" + "ABCDEFGH12345678"),
    ("gcp-key", "AIza" + BODY[:35]),
    ("gcp-key", "ya29" + "." + BODY[:60]),
    ("github-token", "ghp" + "_" + BODY[:36]),
    ("github-token", "github_pat" + "_11" + BODY[:60]),
    ("gitlab-token", "glpat" + "-" + BODY[:20]),
    ("slack-token", "xoxb" + "-1234567890-" + BODY[:24]),
    ("stripe-key", "sk" + "_live_" + BODY[:24]),
    ("twilio-key", "AC" + HEX[:32]),
    ("sendgrid-key", "SG" + "." + BODY[:22] + "." + BODY[:43]),
    ("npm-token", "npm" + "_" + BODY[:36]),
    ("pypi-token", "pypi-" + "AgEIcHlwaS5vcmc" + BODY[:90]),
    ("openai-key", "sk" + "-proj-" + BODY[:48]),
    ("openai-key", "sk" + "-ant-api03-" + BODY[:80]),
    ("jwt", "eyJ" + "hbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiJkYW5hIn0." + BODY[:43]),
    ("service-token", "hf" + "_" + BODY[:34]),
    ("service-token", "shpat" + "_" + HEX[:32]),
    ("service-token", "dckr_pat" + "_" + BODY[:27]),
    ("private-key-file", "LS0tLS1CRUdJTi" + BODY[:80]),
]


@pytest.mark.parametrize("frame", ["{}", "key {} end", 'token = "{}"', "https://a.example/?t={}&x=1", "line\\n{}\\n"])
@pytest.mark.parametrize(("name", "token"), TOKENS, ids=[t[0] for t in TOKENS])
def test_a_token_is_covered_from_end_to_end(name: str, token: str, frame: str) -> None:
    text = frame.format(token)
    start = text.index(token)
    found = [s for s in policy("secrets").find([text])[0].spans if s.detector == name]
    assert any(s.start <= start and s.end >= start + len(token) for s in found)


VALUES = [
    ("password: {}", "hunter2"),
    ("Password={}", "Prl23Db#@"),
    ('"password": "{}",', "correct horse battery"),
    ("PASSWORD = '{}'", "MYPSWRD!@#$%^&*"),
    ("my password is {}", "ravip"),
    ("define('DB_PASSWORD', '{}');", "hunter2"),
    ("ID:master/PW:{}", "dipPr15Gg"),
    ("mysql -u root --password {} db", "Sne3sd8AZjq"),
    ("curl -u admin:{} https://a.example", "dG9rZW4x"),
    ("CREATE USER dana IDENTIFIED BY '{}';", "SqLpa5sW0rD"),
    ('api_key = "{}"', BODY[:20]),
    ("X-Auth-Token: {}", BODY[:24]),
    ("token is {}", "bace4d19-fa7e-b2e4-1afe-9129474bcd81"),
    ("Authorization: Basic {}", BODY[:28]),
    ("curl -H 'Authorization: Bearer {}'", BODY[:40]),
    ("aws_secret_access_key = {}", BODY[:40]),
    ("DefaultEndpointsProtocol=https;AccountKey={};", BODY[:86] + "=="),
    ("x = '{}'", BODY[:32]),
    ("{}", BODY[:64]),
    ("url: mongodb://dana:{}@127.0.0.1:27017/db", "p4Dsr8b"),
]


@pytest.mark.parametrize(("frame", "value"), VALUES)
def test_an_assigned_secret_is_covered(frame: str, value: str) -> None:
    text = frame.format(value)
    start = text.index(value)
    marked = {i for s in policy("secrets").find([text])[0].spans for i in range(s.start, s.end)}
    assert marked >= set(range(start, start + len(value)))


@pytest.mark.parametrize(
    "text",
    [
        "I forgot my password, can you reset it?",
        "the password must be changed, a wrong password",
        "password = None",
        "he was later identified as having passed to the next compass: north",
        "the key to success: patience, and a token gesture",
        "see https://www.example.org/a/long-path-with-many-words/and-more",
        "de305d54 some_function_name_with_words = another_function_name_with_words",
        "commit messages and UPPERCASE WORDS",
    ],
)
def test_talk_about_secrets_is_left(text: str) -> None:
    assert policy("secrets").find([text])[0].spans == ()


def pem(kind: str, lines: list[str], end: str = "\n") -> str:
    return f"-----BEGIN {kind}-----{end}" + end.join(lines) + f"{end}-----END {kind}-----"


LINES = [BODY[:64], BODY[7:71], BODY[:20] + "=="]
KINDS = ["PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "PGP PRIVATE KEY BLOCK"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\\n", '\\n"\n + "'])
def test_a_private_key_is_one_span(kind: str, end: str) -> None:
    key = pem(kind, LINES, end)
    text = f"before {key} after"
    assert [text[s.start : s.end] for s in policy("private-key").find([text])[0].spans] == [key]


@pytest.mark.parametrize("end", ["\n", "\\n"])
def test_a_private_key_without_its_end_is_covered_up_to_its_last_line(end: str) -> None:
    key = pem("RSA PRIVATE KEY", LINES, end).rpartition(f"{end}-----END")[0]
    text = f"{key}{end}{end}And the log goes on: nothing here."
    (span,) = policy("private-key").find([text])[0].spans
    assert span.start == 0
    assert len(key) - 2 <= span.end <= len(key) + 2 * len(end)


def test_headers_inside_a_key_and_two_keys() -> None:
    first = pem("RSA PRIVATE KEY", ["Proc-Type: 4,ENCRYPTED", "DEK-Info: DES-EDE3-CBC,0011", "", *LINES])
    second = pem("EC PRIVATE KEY", LINES[:1])
    text = f"{first}\ntalk\n{second}"
    assert [text[s.start : s.end] for s in policy("private-key").find([text])[0].spans] == [first, second]


def test_redaction_leaves_nothing_of_a_key_and_survives_it() -> None:
    from taciturn.screening.redact import redact, survives

    text = f"key: {pem('RSA PRIVATE KEY', LINES)} sent"
    (masked,) = redact([text], policy("secrets"))
    assert masked.text == f"key: {MASK} sent"
    assert survives([(text, masked.marks)], policy("secrets")) == [[True]]


PAIRS = [
    '{"key": "password", "value": "%"}',
    '{"value": "%", "key": "password"}',
    '{"key":"api_key","type":"text","enabled":true,"value":"%"}',
    '[{"name": "Accept", "value": "json"}, {"name": "X-Api-Key", "value": "%"}]',
    r"{\"key\": \"password\", \"value\": \"%\"}",
    "- name: DB_PASSWORD\n  value: %\n- name: COLOUR\n  value: blue",
    "- name: DB_PASSWORD\n  value: '%'",
    "- name: Authorization\n  value: %\n",
    "<key>password</key><value>%</value>",
    "<key>password</key>\n  <string>%</string>",
    "<td>Password:</td><td>%</td>",
    "<password>%</password>",
    "<password><![CDATA[%]]></password>",
    '<entry key="db.password">%</entry>',
    '<add key="password" value="%"/>',
    '<add value="%" key="password"/>',
    '{"key": "Authorization", "value": "%"}',
]


@pytest.mark.parametrize("value", ["7#qz!(D/4K_WRTx?8{/" + "%", "hunter2x", "Basic ZGFuYTpo" + "dW50ZXIy", "swordfish"])
@pytest.mark.parametrize("frame", PAIRS)
def test_the_value_beside_a_name_is_the_secret_and_the_word_value_never_is(frame: str, value: str) -> None:
    if "\n  value: %" in frame and value.startswith("7#"):
        pytest.skip("no plain YAML scalar: braces need quotes there")
    text = frame.replace("%", value)
    assert redact([text], policy("secrets"))[0].text == frame.replace("%", MASK)


@pytest.mark.parametrize(
    "frame", ['"Authorization": "Basic {}"', '["Authorization", "Basic {}"]', 'set("Authorization", "Basic {}")']
)
def test_a_header_in_a_list_is_a_header(frame: str) -> None:
    value = "ZGFuYTpo" + "dW50ZXIy"
    assert redact([frame.format(value)], policy("secrets"))[0].text == frame.format(MASK)


def test_an_empty_value_and_other_names_are_left() -> None:
    for text in ('{"key": "password", "value": null}', '{"key": "colour", "value": "blue"}', "<value>blue</value>"):
        assert policy("secrets").find([text])[0].spans == ()


@pytest.mark.parametrize("name", ["secrets", "detect-secrets"])
@pytest.mark.parametrize("mark", ["# pragma: allowlist secret", "# gitleaks:allow", "// nosec", "# noqa"])
def test_marks_in_the_text_switch_nothing_off(name: str, mark: str) -> None:
    if name == "detect-secrets":
        pytest.importorskip("detect_secrets", reason="detect-secrets (extra 'secrets') is not installed")
    text = f'api_key = "{BODY[:36]}"  {mark}'
    assert redact([text], policy(name))[0].text == f'api_key = "{MASK}"  {mark}'


class TestDenylists:
    """detect-secrets' own detectors."""

    @pytest.fixture(autouse=True)
    def package(self) -> None:
        pytest.importorskip("detect_secrets", reason="detect-secrets (extra 'secrets') is not installed")

    def test_every_plugin_of_expressions_is_there(self) -> None:
        names = {d.name for d in denylists.detect_secrets()}
        assert {"ds-aws", "ds-github-token", "ds-jwt", "ds-slack", "ds-stripe", "ds-telegram-token"} <= names
        assert all(name not in patterns.names() for name in names)

    def test_they_find_what_the_package_finds(self) -> None:
        from detect_secrets.plugins.aws import AWSKeyDetector
        from detect_secrets.plugins.mailchimp import MailchimpDetector

        p = policy("detect-secrets")
        for plugin, value in (
            (AWSKeyDetector(), "AKIA" + "ABCDEFGH12345678"),
            (MailchimpDetector(), HEX[:32] + "-us12"),
        ):
            text = f"it is {value} here"
            assert list(plugin.analyze_string(text)) == [value]
            assert value in {text[s.start : s.end] for s in p.find([text])[0].spans}

    def test_a_bounded_expression_still_takes_the_whole_token(self) -> None:
        token = "eyJ" + BODY[:30] + "." + BODY * 3
        (span,) = policy("detect-secrets").find([token])[0].spans[:1]
        assert (span.start, span.end) == (0, len(token))

    @pytest.mark.parametrize(
        ("text", "secrets"),
        [
            ("password: \"correct horse\" and secret = 'b c'", ["correct horse", "b c"]),
            ('if ("hunter2" == my_password) {', ["hunter2"]),
            ('private_key "something";', ["something"]),
            (f'PASSWORD = "{"x1" * 400}"', ["x1" * 400]),
            (f"x = '{HEX[:24]}'", [HEX[:24]]),
            (f'y = "{BODY[:40]}"', [BODY[:40]]),
            ("x = 'aaaaaaaaaaaaaaaaaaaaaaaa'", []),
            ("from 8.8.8.8 and 10.0.0.1", ["8.8.8.8"]),
        ],
    )
    def test_keywords_and_entropy_are_found_in_their_place(self, text: str, secrets: list[str]) -> None:
        found = policy("detect-secrets").find([text])[0].spans
        assert [text[a:b] for a, b in merge(found)] == secrets

    def test_its_keyword_and_entropy_plugins_agree(self) -> None:
        from detect_secrets.plugins.high_entropy_strings import Base64HighEntropyString, HexHighEntropyString
        from detect_secrets.plugins.keyword import KeywordDetector

        lines = [
            'db_password = "s3cr3t"', "api_key: 'x'", "nothing = here", f'a = "{BODY[:50]}"', "b = 'abcdefabcdef'",
            f"c='{HEX}'", 'secret => "y z"', "'q' != passwd",
        ]  # fmt: skip
        for line in lines:
            theirs = set(KeywordDetector().analyze_string(line))
            for plugin in (Base64HighEntropyString(), HexHighEntropyString()):
                theirs |= {str(found.secret_value) for found in plugin.analyze_line("a", line)}
            ours = {line[s.start : s.end] for s in policy("detect-secrets").find([line])[0].spans}
            assert theirs <= ours, line

    def test_a_private_key_is_masked_to_its_last_line(self) -> None:
        body = "\n".join(BODY[i : i + 64] for i in (0, 64, 128))
        text = "-----BEGIN RSA PRIVATE " + f"KEY-----\n{body}\n-----END RSA PRIVATE " + "KEY-----"
        assert redact([f"key {text} end"], policy("detect-secrets"))[0].text == f"key {MASK} end"

    @pytest.mark.parametrize(
        "unit",
        [
            "eyJ",
            "a",
            "/",
            "xoxb-1-",
            "sk-",
            "://a:",
            "password",
            'password="',
            "password   ",
            "secret:'",
            "'a",
            '"',
            "`",
            "  = ",
        ],
    )
    def test_they_take_linear_time(self, unit: str) -> None:
        from taciturn.screening.policies import View

        short, long = ([View.of(unit * (n // len(unit)))] for n in (50_000, 200_000))
        for each in denylists.detect_secrets():  # a quadratic one would take sixteen times as long
            assert in_proportion(partial(each.find, short), partial(each.find, long), 8), each.name
