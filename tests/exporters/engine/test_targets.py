"""Which targets may be read: parsed strictly, allowed by entry, checked again after resolution."""

import ipaddress

import pytest

from exporters.engine.config import Allow
from exporters.engine.probe_error import ProbeError
from exporters.engine.targets import Target, TargetRefused, checked_address, parse_target, refused_address

LAN = Allow(scheme="http", host="10.0.0.0/8", ports=("8000-8010",))
NAMED = Allow(scheme="https", host="engine.test", ports=(443,))
LOOPBACK = Allow(scheme="http", host="127.0.0.1", ports=(9000,))
EVERYWHERE = Allow(scheme="http", host="0.0.0.0/0", ports=("1-65535",))


def answers(*addresses):
    """A resolver that always answers with these addresses."""

    async def resolve(host, port):
        return list(addresses)

    return resolve


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("http://10.0.0.1:8000", Target("http", "10.0.0.1", 8000)),
        ("10.0.0.1:8000", Target("http", "10.0.0.1", 8000)),
        ("https://Engine.TEST./metrics", Target("https", "engine.test", 443)),
        ("http://[::1]:8000/", Target("http", "::1", 8000)),
        ("engine", Target("http", "engine", 80)),
    ],
)
def test_targets_are_read(text, target):
    """A URL or host:port; the path may be nothing, / or /metrics."""
    assert parse_target(text) == target


@pytest.mark.parametrize(
    ("text", "mend"),
    [
        ("", "ask for /probe?target="),
        ("ftp://a", "write http:// or https://"),
        ("file:///etc/passwd", "write http:// or https://"),
        ("http://user:secret@10.0.0.1:8000", "bearer_token_file"),
        ("http://user@10.0.0.1:8000", "bearer_token_file"),
        ("http://10.0.0.1:8000/v1/models", "the path is the adapter's to choose"),
        ("http://10.0.0.1:8000/metrics/../sleep", "the path is the adapter's to choose"),
        ("http://10.0.0.1:8000/metrics?x=1", "the path is the adapter's to choose"),
        ("http://10.0.0.1:8000/#x", "the path is the adapter's to choose"),
        ("http://10.0.0.1:0", "write the port"),
        ("http://10.0.0.1:99999", "write http://HOST:PORT"),
        ("http://[::1", "write http://HOST:PORT"),
        ("http://", "not a plain name"),
        ("http://[fe80::1%25eth0]:80", "not a plain name"),
        ("http://a b", "remove it"),
        ("http://a\nb", "remove it"),
        ("http:\\\\a", "remove it"),
        ("http://ex\u00e4mple", "write it in ASCII"),
    ],
)
def test_other_targets_are_refused_with_the_mend(text, mend):
    """Each refusal says what to write instead; user info is not repeated."""
    with pytest.raises(TargetRefused) as caught:
        parse_target(text)
    assert mend in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "fe80::1",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::1",
        "0.0.0.0",
        "::",
        "224.0.0.1",
        "ff02::1",
        "fd00:ec2::254",
        "100.100.100.200",
    ],
)
def test_addresses_that_are_never_read(address):
    """Link-local in every disguise, multicast, unspecified and cloud metadata."""
    assert refused_address(ipaddress.ip_address(address)) is not None


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "10.0.0.1", "192.0.2.7", "::1", "fd00::1", "::ffff:10.0.0.1"]
)
def test_other_addresses_are_the_list_s_to_judge(address):
    """Private and loopback addresses are where engines live."""
    assert refused_address(ipaddress.ip_address(address)) is None


async def test_a_network_entry_covers_its_addresses_and_ports():
    """Scheme, network and port must all fit one entry."""
    assert str(await checked_address(parse_target("10.1.2.3:8010"), [LAN], answers())) == "10.1.2.3"
    for text in ("10.1.2.3:8011", "11.0.0.1:8000", "https://10.1.2.3:8000"):
        with pytest.raises(TargetRefused, match="add an entry to `allow`"):
            await checked_address(parse_target(text), [LAN], answers())


async def test_a_name_is_judged_by_what_it_resolves_to():
    """A name under a network entry is read at an address inside it, and at no other."""
    assert (
        str(await checked_address(parse_target("node:8000"), [LAN], answers("192.0.2.1", "10.9.9.9")))
        == "10.9.9.9"
    )
    with pytest.raises(TargetRefused, match=r"no entry covers 192\.0\.2\.1"):
        await checked_address(parse_target("node:8000"), [LAN], answers("192.0.2.1"))


async def test_a_named_entry_covers_its_name_wherever_it_points():
    """The operator named it: any address but those that are never read."""
    target = parse_target("https://engine.test")
    assert str(await checked_address(target, [NAMED], answers("192.0.2.5"))) == "192.0.2.5"
    with pytest.raises(TargetRefused, match="link-local, which is never read"):
        await checked_address(target, [NAMED], answers("169.254.169.254"))
    with pytest.raises(TargetRefused):
        await checked_address(parse_target("https://other.test"), [NAMED], answers("192.0.2.5"))


async def test_everything_allowed_is_still_not_link_local():
    """0.0.0.0/0 does not open the metadata service."""
    with pytest.raises(TargetRefused, match="name the engine's own address"):
        await checked_address(parse_target("169.254.169.254:80"), [EVERYWHERE], answers())


async def test_odd_spellings_of_an_address_are_resolved_and_then_judged():
    """2130706433 is 127.0.0.1 to the system; what counts is the address that comes out."""
    with pytest.raises(TargetRefused, match=r"no entry covers 127\.0\.0\.1"):
        await checked_address(parse_target("2130706433:8000"), [LAN], answers("127.0.0.1"))


async def test_no_name_is_looked_up_for_a_target_that_no_entry_can_allow():
    """A denied target costs no DNS request."""

    async def never(host, port):
        raise AssertionError("looked up")

    with pytest.raises(TargetRefused):
        await checked_address(parse_target("https://node:8000"), [LAN], never)
    with pytest.raises(TargetRefused):
        await checked_address(parse_target("http://node:9000"), [NAMED], never)


async def test_a_name_without_an_address_fails_the_probe():
    """DNS is the engine's side: a failed probe, not a bad request."""

    async def fails(host, port):
        raise OSError("Name or service not known")

    for resolve in (fails, answers()):
        with pytest.raises(ProbeError) as caught:
            await checked_address(parse_target("node:8000"), [LAN], resolve)
        assert caught.value.reason == "dns"


def test_the_authority_names_the_port_unless_it_is_the_scheme_s():
    """What goes into the Host header."""
    assert parse_target("http://[::1]:8000").authority == "[::1]:8000"
    assert parse_target("https://engine.test").authority == "engine.test"
