"""Writes a Python wheel that carries the command: a zip with metadata, for which no package is needed.

    python3 tools/wheel/build.py COMMAND VERSION PLATFORM FOLDER

COMMAND is a static program; PLATFORM a tag such as manylinux2014_x86_64. The same input gives the same bytes.
"""

import base64
import hashlib
import sys
import zipfile
from pathlib import Path

root = Path(__file__).resolve().parents[2]


def main(command: str, version: str, platform: str, folder: str) -> None:
    tag = f"py3-none-{platform}"
    info = f"servecast-{version}.dist-info"
    files = {f"servecast/{each.name}": each.read_bytes() for each in sorted((root / "tools/wheel/servecast").iterdir()) if each.is_file()}
    files["servecast/bin/servecast"] = Path(command).read_bytes()
    files[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: servecast\nVersion: {version}\n"
        "Summary: Forecasts how an LLM serving deployment behaves\n"
        "License: Apache-2.0\nRequires-Python: >=3.8\n"
        "Provides-Extra: frame\nRequires-Dist: pandas; extra == 'frame'\n"
    ).encode()
    files[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: servecast\nRoot-Is-Purelib: false\nTag: {tag}\n"
    ).encode()
    files[f"{info}/entry_points.txt"] = b"[console_scripts]\nservecast = servecast.__main__:main\n"
    for name in ("LICENSE", "NOTICE"):
        files[f"{info}/{name}"] = (root / name).read_bytes()
    record = "".join(f"{name},sha256={digest(data)},{len(data)}\n" for name, data in files.items())
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    target = Path(folder) / f"servecast-{version}-{tag}.whl"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            mode = 0o755 if name == "servecast/bin/servecast" else 0o644
            entry.external_attr = (0o100000 | mode) << 16
            wheel.writestr(entry, data)
    print(target)


def digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
