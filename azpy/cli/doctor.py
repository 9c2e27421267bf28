"""Check what is installed, which devices work, and how fast this machine is.

az-doctor
az-doctor --json
"""

import json
from collections.abc import Sequence
from typing import Any

from azpy.cli.common import Parser, command
from azpy.devices import KINDS
from azpy.doctor import advice, examine, usable


def _doctor(arguments: Sequence[str]) -> int:
    parser = Parser("az-doctor", __doc__, "docs/start/install.md")
    add, _ = parser.section("Options")
    add("--json", action="store_true", help="print everything as JSON, with the advice")
    add("--no-speed", action="store_true", help="skip the speed check")
    given = parser.parse_args(arguments)
    report = examine(speed=not given.no_speed)
    lines = advice(report)
    if given.json:
        print(json.dumps(report | {"usable": usable(report), "advice": lines}, indent=2))
    else:
        print("\n".join(_text(report)))
        print("\nNext:" if lines else "\nNothing to do.")
        print("".join(f"  - {line}\n" for line in lines), end="", flush=True)
    return 0 if usable(report) else 2


def _text(report: dict[str, Any]) -> list[str]:
    packages, cpu, memory, speed = report["packages"], report["cpu"], report["memory"], report["speed"]
    lines = [f"azpy {report['azpy']}, Python {report['python']}, {report['system']}"]
    lines += [f"core with your own games: {report['core']}"] if report["core"] != "azpy._core" else []
    lines.append("")
    lines += [_row(name, version or "not installed") for name, version in packages.items()]
    lines += [_row(name, f"does not load: {why}") for name, why in report["broken"].items()]
    lines += ["", "ONNX Runtime's devices:"]
    for device, why in report["providers"].items():
        title = KINDS[device].title
        lines.append(_row(title, f"no: {why.removeprefix(f'{title} cannot be used: ')}" if why else "works"))
    lines.append(_row("torch on a GPU", f"no: {report['torch_gpu']}" if report["torch_gpu"] else "works"))
    lines += ["", _row("CPU", f"{cpu['name']}, {', '.join(cpu['features']) or 'no vector extensions known'}")]
    quota = "" if cpu["quota"] is None else f", {cpu['quota']:g} by the control group's limit"
    lines.append(_row("cores", f"{cpu['usable']} usable of {cpu['cores']} ({cpu['affinity']} allowed{quota})"))
    sizes = [f"{size / 2**30:.1f} GiB {name}" for name, size in memory.items() if size]
    lines.append(_row("memory", ", ".join(sizes) or "unknown"))
    gpus = [f"{gpu['name']}, {gpu.get('memory')}, driver {gpu.get('driver')}" for gpu in report["gpus"]]
    lines += [_row("GPU", gpu) for gpu in gpus or ["none found by nvidia-smi"]]
    lines += [_row(name, value) for name, value in report["environment"].items()]
    if speed is not None:
        lines += ["", "Speed of one thread:"]
        lines.append(_row("search", f"{speed['simulations_per_second']:,.0f} simulations/s, without a network"))
        if "evaluations_per_second" in speed:
            text = f"{speed['evaluations_per_second']:,.0f} evaluations/s, 8 convolutions of 32 channels on 6 x 7"
            lines.append(_row("network", text))
    return lines


def _row(name: str, text: str) -> str:
    return f"  {name:<21} {text}"


main = command("az-doctor", _doctor)
