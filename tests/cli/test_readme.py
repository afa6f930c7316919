"""The README says what the code says."""

import re
from pathlib import Path

import pytest

from orchestrator.evidence.rules.catalogue import Check, markdown_table

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")


def test_the_readme_lists_the_checks_under_the_numbers_that_verify_prints() -> None:
    listed = README.partition("<!-- checks -->\n")[2].partition("<!-- /checks -->")[0]
    assert listed == markdown_table(), "paste the output of catalogue.markdown_table()"


def test_every_check_that_a_claim_names_exists() -> None:
    claims = README.partition("### What a certified row claims")[2].partition("###")[0]
    cells = [line.split("|")[3] for line in claims.splitlines() if re.match(r"\| \d", line)]
    assert len(cells) == 9
    numbers = {int(number) for cell in cells for number in re.findall(r"\b\d+\b", cell)}
    assert numbers <= {check.number for check in Check}


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([^)#:]+)\)", README))))
def test_every_link_into_the_repository_leads_somewhere(target: str) -> None:
    assert (ROOT / target).exists()


def test_the_changelog_keeps_its_form() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert text.startswith("# Changelog\n")
    assert "## [Unreleased]" in text
    kinds = set(re.findall(r"^### (.+)$", text, re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
