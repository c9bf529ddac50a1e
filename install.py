"""Install the packages of requirements.lock into the environment that runs this file: with uv, or with pip where uv does not work.

`make` calls this with the Python of a new environment, so it uses the standard library alone. uv takes a sixth of pip's processor time.
It does not read pip's configuration, in which many universities name a mirror, a certificate or a proxy, so those settings are translated
here. Where pip has a setting that uv lacks, pip installs.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

LOCK = Path(__file__).with_name("requirements.lock")
PIP = [sys.executable, "-m", "pip"]
# Later sections of pip's configuration override earlier ones; sections of other commands do not concern an installation.
SECTIONS = ("global", "install", ":env:")
# What pip's settings are called in uv's environment. uv separates the values of most lists by spaces, as pip does.
COUNTERPARTS = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "constraint": "UV_CONSTRAINT",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "client-cert": "SSL_CLIENT_CERT",
    "proxy": "HTTPS_PROXY",
    "timeout": "UV_HTTP_TIMEOUT",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "cache-dir": "UV_CACHE_DIR",
    "no-cache-dir": "UV_CACHE_DIR",
}
# Settings that change neither what is installed nor where it comes from; `pip config list` has read the file of `config-file` already.
COSMETIC = {
    "break-system-packages",
    "compile",
    "config-file",
    "disable-pip-version-check",
    "log",
    "no-color",
    "no-compile",
    "no-input",
    "no-python-version-warning",
    "no-warn-conflicts",
    "no-warn-script-location",
    "prefer-binary",
    "progress-bar",
    "quiet",
    "require-virtualenv",
    "resume-retries",
    "retries",
    "root-user-action",
    "verbose",
}
# The lines that say which packages of 10 MB and more are downloaded, when all are, and what is wrong.
UV_NEWS = re.compile(r"Downloading .*\(\d\d+[.\d]*[MG]iB\)|^Prepared .*|^Installed .*|^error.*")
PIP_NEWS = re.compile(r"(?:Downloading|Using cached) .*\(\d\d+[.\d]* [MG]B\)|^Installing collected packages|^ERROR.*")
NOTHING = re.compile(r"(?!)")


def pip_settings(listing: str) -> dict[str, str]:
    """Return the settings that apply to `pip install`, from what `pip config list` prints."""
    found: dict[str, dict[str, str]] = {section: {} for section in SECTIONS}
    for line in listing.splitlines():
        name, _, value = line.partition("=")
        section, _, key = name.rpartition(".")
        if section in found:
            found[section][key] = str(ast.literal_eval(value))
    return {key: value for section in SECTIONS for key, value in found[section].items()}


def uv_environment(settings: Mapping[str, str], environment: Mapping[str, str], temporary: Path) -> dict[str, str]:
    """Return the environment in which uv does what pip does with these settings.

    Args:
        settings: pip's settings by their long names.
        environment: the present environment; variables of uv that it has are kept.
        temporary: the folder of uv's cache where pip is to keep none.

    Raises:
        LookupError: uv has no counterpart of a setting; the message is its name.
    """
    # pip reads these where it has no `cert`. It takes the best version of all indexes, where uv stops at the first that has the package.
    bundles = [environment[name] for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE") if environment.get(name)]
    ours = {"UV_INDEX_STRATEGY": "unsafe-best-match", **({"SSL_CERT_FILE": bundles[0]} if bundles else {})}
    for key, value in settings.items():
        if key in COSMETIC | {"no-index"}:
            continue
        if key not in COUNTERPARTS:
            raise LookupError(key)
        if value.strip():
            ours[COUNTERPARTS[key]] = _converted(key, value.strip(), temporary)
    ours = {name: value for name, value in ours.items() if value}
    if "HTTPS_PROXY" in ours:
        ours["HTTP_PROXY"] = ours["HTTPS_PROXY"]
    if "SSL_CERT_FILE" in ours and Path(ours["SSL_CERT_FILE"]).is_dir():
        ours["SSL_CERT_DIR"] = ours.pop("SSL_CERT_FILE")
    return {**environment, **ours, **{name: value for name, value in environment.items() if name.startswith("UV_")}}


def uv_options(settings: Mapping[str, str]) -> list[str]:
    """Return what uv takes as an option alone."""
    return ["--no-index"] if _is_on(settings.get("no-index", "")) else []


def _is_on(value: str) -> bool:
    """Return whether a switch of pip's configuration is on."""
    return value.lower() in {"1", "true", "yes", "on", "t", "y"}


def _converted(key: str, value: str, temporary: Path) -> str:
    """Return a value of pip's configuration as uv writes it."""
    convert: dict[str, Callable[[], str]] = {
        "find-links": lambda: ",".join(value.split()),
        "extra-index-url": lambda: " ".join(value.split()),
        "constraint": lambda: " ".join(value.split()),
        "trusted-host": lambda: " ".join(value.split()),
        "proxy": lambda: value if "://" in value else f"http://{value}",
        "cache-dir": lambda: str(Path(value).expanduser() / "uv"),
        "no-cache-dir": lambda: str(temporary) if _is_on(value) else "",
    }
    return convert.get(key, lambda: value)()


def run(command: list[str], news: re.Pattern[str], **options: Any) -> bool:
    """Run a command and show the lines of its output that are news; a binary file `log` gets all of it. Return whether it succeeded."""
    log: BinaryIO | None = options.pop("log", None)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if log is not None:
                log.write(line)
            if shown := news.search(line.decode(errors="replace").rstrip()):
                print(shown.group(), flush=True)
    return process.returncode == 0


def install_with_uv(log: Path) -> str:
    """Install uv and, with it, the packages of the lock; return why that did not work, or nothing."""
    temporary = Path(sys.prefix) / ".uv_cache"
    listing = subprocess.run([*PIP, "config", "list"], capture_output=True, text=True, check=False).stdout
    try:
        settings = pip_settings(listing)
        environment = uv_environment(settings, os.environ, temporary)
    except LookupError as unknown:
        return f"pip is configured with {unknown.args[0]}, which uv does not have."
    except (SyntaxError, ValueError):
        return "pip's configuration cannot be read."
    options = ["--quiet", "--no-deps", "--only-binary", "uv", "--log", str(log), "--constraint", str(LOCK)]
    if not run([*PIP, "install", *options, "uv"], NOTHING):
        return "uv is not to be had."
    command = [sys.executable, "-m", "uv", "pip", "install", "--python", sys.executable, "--requirements", str(LOCK)]
    command += uv_options(settings)
    try:
        with log.open("ab") as file:
            return "" if run(command, UV_NEWS, log=file, env=environment) else "uv did not succeed."
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def install_with_pip(log: Path) -> bool:
    """Install the packages of the lock but uv with pip; return whether that succeeded."""
    lines = LOCK.read_text(encoding="utf-8").splitlines(keepends=True)
    rest = Path(sys.prefix) / "requirements.lock"
    rest.write_text("".join(line for line in lines if not line.startswith("uv==")), encoding="utf-8")
    options = ["--no-compile", "--progress-bar", "off", "--log", str(log)]
    return run([*PIP, "install", *options, "--requirement", str(rest)], PIP_NEWS)


def main() -> int:
    """Install, show what is downloaded, and return the exit status: 1 where neither uv nor pip succeeded, 2 outside of an environment."""
    if sys.prefix == sys.base_prefix:
        print("This installs into an environment of its own. Type `make`, or call it with the environment's Python.")
        return 2
    log = Path(sys.prefix) / "install.log"
    log.write_text("", encoding="utf-8")
    if reason := install_with_uv(log):
        print(f"{reason} pip installs instead, which takes longer.", flush=True)
        if not install_with_pip(log):
            print(f"Not installed; {log} says why.")
            return 1
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
