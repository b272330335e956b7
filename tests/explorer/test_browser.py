"""The explorer, and an executed notebook, in a real JupyterLab, in a real browser."""

from __future__ import annotations

import csv
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import nbformat
import pytest
from bs4 import BeautifulSoup
from PIL import Image

import erlib
from tests.browser import NEEDS_CHROMIUM, chromium
from tests.explorer import tiny_run
from tests.readable import faults
from tests.reports.sample import finished_profile

ROOT = Path(__file__).parents[2]
TOKEN = "only-this-test"
NASTY = (
    '🙂 שלום عالم & "it\'s" <b>i</b> <script>window.broken=1</script> '
    "<img src=x onerror=window.broken=2> &lt;i&gt; ]]> 👩‍🔬"
)

# The explorer, with a slow method that is as slow on every machine.
PATIENT = """
import time
from dataclasses import replace

import torch

import erlib
from erlib.attributions import METHODS
from erlib.attributions.registry import Scores


def lime(request):
    "Takes two minutes, unless somebody stops it."
    for part in range(1200):
        request.progress(part, 1200)
        time.sleep(0.1)
    return Scores(torch.ones(request.mask.shape))


METHODS["lime"] = replace(METHODS["lime"], function=lime)
erlib.explore()
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """The folder of a JupyterLab server that knows one trained run; a notebook's name follows."""
    home = tmp_path_factory.mktemp("lab")
    (home / "notebooks").mkdir()
    shutil.copy(ROOT / "notebooks" / "explore.ipynb", home / "notebooks")
    patient = nbformat.read(home / "notebooks" / "explore.ipynb", as_version=4)
    patient.cells = [nbformat.v4.new_code_cell(PATIENT)]
    nbformat.write(patient, home / "notebooks" / "patient.ipynb")
    executed = finished_profile(home / "project") / "reports" / "quick" / "01_er_lens.ipynb"
    shutil.copy(executed, home / "notebooks" / "executed.ipynb")
    settings = home / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    quiet = {"fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": True}
    (settings / "notification.jupyterlab-settings").write_text(json.dumps(quiet))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ERLIB_DATA", str(home / "data"))
        erlib.run([tiny_run.spec(home / "data")], store=home / "store")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        **os.environ,
        "ERLIB_STORE": str(home / "store"),
        "ERLIB_DATA": str(home / "data"),
        "HF_HUB_OFFLINE": "1",
        "PYTHONPATH": str(ROOT),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        **{
            f"JUPYTER{name}": str(home / name.strip("_").lower())
            for name in ("_CONFIG_DIR", "_DATA_DIR", "_RUNTIME_DIR", "LAB_WORKSPACES_DIR")
        },
        "IPYTHONDIR": str(home / "ipython"),
    }
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1",
        f"--port={port}", "--ServerApp.port_retries=0", f"--IdentityProvider.token={TOKEN}",
        f"--ServerApp.root_dir={home / 'notebooks'}", "--LabApp.extension_manager=readonly",
    ]  # fmt: skip
    with (home / "log").open("w") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=home)
        try:
            _wait_for(f"http://127.0.0.1:{port}/api?token={TOKEN}", server, home / "log")
            # `reset`: or the notebooks of earlier tests are open, too
            yield f"http://127.0.0.1:{port}/lab/tree/{{}}?reset&token={TOKEN}"
        finally:
            server.terminate()
            server.wait(20)


def _wait_for(address, server, log):
    for _ in range(1200):
        try:
            return urllib.request.urlopen(address, timeout=2).read()
        except OSError:
            assert server.poll() is None, log.read_text()
            time.sleep(0.1)
    raise AssertionError(log.read_text())


class Student:
    """What one does with the explorer, and what one sees."""

    def __init__(self, tab, address):
        self.tab = tab
        tab.goto(address, timeout=120_000)
        tab.set_default_timeout(120_000)  # a machine may be busy
        tab.get_by_text("| Idle").wait_for()
        tab.locator(".jp-CodeCell .cm-content").first.click()
        tab.keyboard.press("Shift+Enter")
        tab.wait_for_selector(".erlib-explorer")

    def explain(self, text):
        self.tab.get_by_placeholder("a text", exact=True).fill(text)
        self.tab.get_by_role("button", name="Explain", exact=True).click()
        self.tab.wait_for_selector(f'.erlib-explorer .hint:text("{len(text.split()):,} words")')
        self.wait()

    def wait(self):
        self.tab.wait_for_selector('.erlib-explorer .results[aria-busy="false"]')

    def words(self, place):
        return self.tab.locator(f"{place} [data-place]").all_inner_texts()

    def probabilities(self, column):
        cells = self.tab.locator(f".predictions tbody tr td:nth-of-type({column}) .bar")
        bars = [bar.split() for bar in cells.all_inner_texts()]
        return {name: float(p) for name, p in bars}

    def message(self):
        return self.tab.locator(".erlib-explorer .message").inner_text()

    def save(self, label, folder):
        with self.tab.expect_download() as download:
            self.tab.get_by_role("button", name=label).click()
        path = folder / download.value.suggested_filename
        download.value.save_as(path)
        return path


@pytest.mark.browser
@NEEDS_CHROMIUM
def test_a_student_types_a_sentence_and_removes_a_word_in_jupyterlab(lab, tmp_path):
    complaints: list[str] = []
    with chromium() as browser:
        tab = browser.new_page(viewport={"width": 1280, "height": 1500})
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        student = Student(tab, lab.format("explore.ipynb"))

        sentence = "the funny film is and the plot"
        student.explain(sentence)
        methods = tab.locator(".heatmaps tbody th").all_inner_texts()
        assert methods == [
            "attention", "input_x_gradient", "integrated_gradients (20 points)", "rollout",
        ]  # fmt: skip
        for i in range(1, len(methods) + 1):
            assert student.words(f".heatmaps tbody tr:nth-child({i}) td") == sentence.split()
        assert "funny: " in tab.locator('.heatmaps [data-place="0:1"]').first.get_attribute("title")
        assert tab.locator(".matrix tbody tr").count() == 4
        assert tab.locator(".curves svg.chart").count() == 2

        before = student.probabilities(1)
        tab.locator('.heatmaps [data-place="0:1"]').first.click()
        tab.get_by_text("without 1 word", exact=True).wait_for()
        after = student.probabilities(2)
        assert before["positive"] > 0.5 and before == student.probabilities(1)
        assert after["positive"] < before["positive"] - 0.05
        assert tab.locator(".words .removed").all_inner_texts() == ["funny"]
        tab.screenshot(path=tmp_path / "jupyterlab.png")

        saved = student.save("Save as HTML", tmp_path)
        assert faults(browser, saved) == []
        page = BeautifulSoup(saved.read_text(encoding="utf-8"), "html.parser")
        words = [w.get_text() for w in page.select(".heatmaps tr:first-child td [data-place]")]
        assert words == sentence.split() and page.select(".words .removed")
        assert not page.find(["script", "link"]) and page.find("meta", charset="utf-8")
        with Image.open(student.save("Save as PNG", tmp_path)) as picture:
            assert picture.width > 1000 and len(picture.convert("RGB").getcolors(1 << 24)) > 50

        with student.save("Scores as CSV", tmp_path).open(encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        assert [row["word"] for row in rows[: len(sentence.split())]] == sentence.split()
        assert tab.locator(".numbers tbody tr").count() == 4

        tab.get_by_role("button", name="Put all words back").click()
        tab.wait_for_selector(".words .removed", state="detached")
        tab.get_by_role("button", name="token", exact=True).click()
        tab.wait_for_selector(".heatmaps :text('[CLS]')")

        tab.get_by_placeholder("other models, with commas").fill("nobody/such-model")
        tab.get_by_role("button", name="Explain", exact=True).click()
        tab.wait_for_selector(".message:has-text('no model \\'nobody/such-model\\'')")
        tab.get_by_placeholder("other models, with commas").fill("")

        long = f"{NASTY} {' '.join(['film'] * (2000 - len(NASTY.split())))}"
        student.explain(long)
        assert student.message() == ""
        assert student.words(".words") == long.split()
        assert "of 2,000 words" in tab.locator("table.predictions").inner_text()
        tab.get_by_role("button", name="word", exact=True).click()
        tab.wait_for_selector(".heatmaps :text('[CLS]')", state="detached")
        shown = student.words(".heatmaps tbody tr:nth-child(1) td")
        assert "<script>window.broken=1</script>" in shown and shown == long.split()[: len(shown)]
        tab.screenshot(path=tmp_path / "nasty.png")
        with Image.open(student.save("Save as PNG", tmp_path)) as picture:
            assert picture.height > 1000
        assert (
            tab.locator(".jp-OutputArea select").nth(1).evaluate("list => list.selectedIndex") == 0
        )
        assert tab.evaluate("window.broken") is None

        tab.get_by_label("Corpus", exact=True).select_option(label="movies (local)")
        tab.get_by_role("button", name="Look through it").click()
        opened = tab.locator(".texts tbody tr")
        opened.first.wait_for(timeout=60_000)
        tab.get_by_role("button", name="least confidence first").click()
        sure = opened.evaluate_all("rows => rows.map(row => parseFloat(row.dataset.confidence))")
        assert len(sure) == 16 and sure == sorted(sure)
        text = opened.locator("button").first.inner_text()
        opened.locator("button").first.click()
        tab.locator(".words", has_text=text).wait_for(timeout=60_000)
        student.wait()
        assert student.words(".words") == text.split()
        assert tab.locator(".jp-OutputArea-output pre:has-text('Traceback')").count() == 0
    assert complaints == []


@pytest.mark.browser
@NEEDS_CHROMIUM
def test_a_slow_method_is_looked_at_and_stopped_and_words_are_removed_by_keyboard(lab, tmp_path):
    with chromium() as browser:
        tab = browser.new_page(viewport={"width": 1280, "height": 1500})
        student = Student(tab, lab.format("patient.ipynb"))
        explain = tab.get_by_role("button", name="Explain", exact=True)
        stop = tab.get_by_role("button", name="Stop", exact=True)
        student.explain("the plot is dull")
        assert explain.is_enabled() and stop.is_disabled()

        sentence = "the funny film is and the plot"
        tab.get_by_label("lime (slow)").check()
        tab.get_by_label("Text", exact=True).fill(sentence)
        explain.click()
        tab.wait_for_selector('.erlib-explorer [role="status"]:has-text("lime")')
        lime = tab.locator('.heatmaps tbody tr:has(th:text-is("lime")) td')
        assert lime.inner_text() == "…" and student.words(".words") == sentence.split()
        tab.get_by_role("button", name="token", exact=True).click()
        tab.wait_for_selector(".heatmaps :text('[CLS]')")
        bar = tab.get_by_role("progressbar", name="progress of the explanation")
        assert bar.is_visible() and explain.is_disabled() and stop.is_enabled()
        tab.screenshot(path=tmp_path / "slow.png")

        stop.click()
        tab.wait_for_selector(".message:has-text('Stopped')")
        student.wait()
        assert explain.is_enabled() and stop.is_disabled() and lime.inner_text() == "…"
        assert tab.locator(".heatmaps [data-place]").count() > len(sentence.split())
        assert tab.locator(".curves svg.chart").count() == 2

        words = tab.locator(".words [data-place]")
        words.first.focus()
        for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "Enter"):
            tab.keyboard.press(key)
        tab.get_by_text("without 1 word", exact=True).wait_for()
        assert tab.locator(".words .removed").all_inner_texts() == ["funny"]
        assert words.nth(1).get_attribute("aria-pressed") == "true"
        assert [words.nth(i).get_attribute("tabindex") for i in range(3)] == ["-1", "0", "-1"]
        tab.keyboard.press("Space")
        tab.wait_for_selector(".words .removed", state="detached")
        assert words.nth(1).get_attribute("aria-pressed") == "false"


@pytest.mark.browser
@NEEDS_CHROMIUM
def test_an_executed_notebook_opens_with_its_outputs_though_nobody_trusts_it_yet(lab):
    with chromium() as browser:
        tab = browser.new_page()
        tab.goto(lab.format("executed.ipynb"), timeout=120_000)
        picture = tab.locator("figure.artefact img")
        picture.wait_for(timeout=120_000)
        assert picture.evaluate("image => image.naturalWidth") > 100
        assert picture.get_attribute("alt") == "Two lines."
        assert "10.5 ± 0.1" in tab.locator("figure.artefact table").first.inner_text()
        word = tab.locator(".heatmap .text span").first
        assert word.inner_text() == "good" and word.get_attribute("title") == "good: 1"
        assert word.evaluate("e => getComputedStyle(e).backgroundColor") == "rgb(0, 114, 178)"
