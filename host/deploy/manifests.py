#!/usr/bin/env python3
"""Checks the files by which toolcell is run on Kubernetes, with compose and as a built image: part of `make lint`.

    host/deploy/manifests.py [--render OVERLAY] [--self-test]

Each overlay, and each component on top of one, is rendered with kustomize and compared with the schemas of Kubernetes of
several versions. Then come the rules of this project: what a pod may do, times that must fit the manifest of the tools, names
that must meet. `--self-test` breaks rendered files on purpose, and fails where nothing notices. tests/clients/setup.sh gets
kubectl and the schemas once. Which metrics there are is for the end-to-end tests.
"""

import argparse
import base64
import copy
import functools
import hashlib
import importlib.resources
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

DEPLOY = Path(__file__).resolve().parent
ROOT = DEPLOY.parent.parent
PAGE = ROOT / "host" / "docs" / "kubernetes.md"
PROXY = ROOT / "host" / "docs" / "reverse-proxy.md"
# From the first with image volumes to the newest.
VERSIONS = ("1.31.0", "1.33.0", "1.35.0", "1.37.0")
UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}
# A call's deadline where nothing sets one, and the time in which the host ends once its calls have: cancelled calls and blocked
# operations get a second each.
DEADLINE, END = 30, 3
WORKLOADS = ("Deployment", "StatefulSet")
MARGIN = 2


def tools():
    """The Python that has the schemas, and kubectl."""
    said = subprocess.run([ROOT / "tests" / "clients" / "setup.sh", "kubernetes"], stdout=subprocess.PIPE, text=True, check=True)
    return said.stdout.split("\n")[:2]


if "TOOLCELL_KUBECTL" not in os.environ:
    python, kubectl = tools()
    os.execve(python, [python, *sys.argv], os.environ | {"TOOLCELL_KUBECTL": kubectl})

import yaml  # noqa: E402
from jsonschema import Draft202012Validator  # noqa: E402
from referencing import Registry, Resource  # noqa: E402


def seconds(text):
    """A duration of a manifest or a compose file."""
    number, unit = re.fullmatch(r"(\d+)(ms|s|m|h)", text).groups()
    return int(number) * UNITS[unit]


# What is rendered.


def render(folder):
    """The objects that kustomize makes of a folder."""
    said = subprocess.run([os.environ["TOOLCELL_KUBECTL"], "kustomize", folder], capture_output=True, text=True, check=False)
    if said.returncode:
        raise SystemExit(f"manifests: {folder}: {said.stderr.strip()}")
    return [document for document in yaml.safe_load_all(said.stdout) if document]


def overlays():
    """The folders that are applied as they stand."""
    kubernetes = DEPLOY / "kubernetes"
    return [kubernetes / "base", *sorted((kubernetes / "overlays").iterdir())]


def shown_overlays(scratch, lock="lock"):
    """The overlays of the page, each written out with a folder of tools beside it: (name, folder)."""
    text = PAGE.read_text("utf-8")
    blocks = re.findall(r"^```yaml\n# ([\w-]+)/kustomization\.yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    shutil.copytree(DEPLOY, scratch / "host" / "deploy", ignore=shutil.ignore_patterns("__pycache__"))
    for name, content in blocks:
        folder = scratch / name
        (folder / "tools" / "components").mkdir(parents=True)
        (folder / "kustomization.yaml").write_text(content, "utf-8")
        shutil.copy(DEPLOY / "sample" / "toolcell.toml", folder / "tools")
        (folder / "tools" / "toolcell.lock").write_text(lock, "utf-8")
        (folder / "tools" / "components" / "weather.wasm").write_bytes(b"\0asm\x0d\0\x01\0\xff")
        yield name, folder


# Schemas.


@functools.cache
def schemas(version):
    """The folder of a version's schemas, and the definitions that all of them use."""
    folder = importlib.resources.files("kubernetes_validate") / "kubernetes-json-schema" / f"v{version}-local-strict"
    definitions = json.loads((folder / "_definitions.json").read_text("utf-8"))
    return folder, Resource.from_contents(definitions) @ Registry()


@functools.cache
def validator(version, kind, api):
    folder, registry = schemas(version)
    group = re.sub(r"^([^./]*)(?:\.[^/]*)?/", r"\1-", api)
    schema = json.loads((folder / f"{kind.lower()}-{group}.json").read_text("utf-8"))
    return Draft202012Validator(schema, registry=Resource.from_contents(schema) @ registry)


def not_as_schemas(objects):
    """Where an object is not as Kubernetes wants it, in each version."""
    for found in objects:
        for version in VERSIONS:
            for problem in validator(version, found["kind"], found["apiVersion"]).iter_errors(found):
                place = ".".join(map(str, problem.absolute_path))
                yield f"Kubernetes {version}: {shown(found)}: {place}: {problem.message[:200]}"


# The rules of this project.


def shown(found):
    return f"{found['kind']} {found['metadata']['name']}"


def of(objects, *kinds):
    return [found for found in objects if found["kind"] in kinds]


def pods(objects):
    """Each workload with the pod that it makes."""
    return [(found, found["spec"]["template"]) for found in of(objects, *WORKLOADS)]


def matches(selector, labels):
    return bool(selector) and all(labels.get(key) == value for key, value in selector.items())


def hardened(objects):
    """Pods have no more rights than they need."""
    for found, pod in pods(objects):
        spec, name = pod["spec"], shown(found)
        security = spec.get("securityContext", {})
        wanted = {
            "the token of the account is mounted": spec.get("automountServiceAccountToken") is False,
            "variables of services are set": spec.get("enableServiceLinks") is False,
            "it may run as root": security.get("runAsNonRoot") is True and security.get("runAsUser", 0) > 0,
            "no seccomp profile": security.get("seccompProfile", {}).get("type") in ("RuntimeDefault", "Localhost"),
            "it shares a namespace of the node": not any(spec.get(key) for key in ("hostNetwork", "hostPID", "hostIPC")),
        }
        for container in [*spec["containers"], *spec.get("initContainers", [])]:
            own = container.get("securityContext", {})
            wanted |= {
                "the root can be written": own.get("readOnlyRootFilesystem") is True,
                "it may gain rights": own.get("allowPrivilegeEscalation") is False and not own.get("privileged"),
                "it keeps capabilities": own.get("capabilities") == {"drop": ["ALL"]},
                "no bound of memory": "memory" in container.get("resources", {}).get("limits", {}),
                "nothing requested for the scheduler and the autoscaler": {"cpu", "memory"} <= container.get("resources", {}).get("requests", {}).keys(),
                "an image that changes under its name": not container["image"].endswith(":latest"),
            }
        wanted["a folder of the node is mounted"] = not any("hostPath" in volume for volume in spec.get("volumes", []))
        yield from (f"{name}: {problem}" for problem, holds in wanted.items() if not holds)
    for found in of(objects, "ServiceAccount"):
        if found.get("automountServiceAccountToken") is not False:
            yield f"{shown(found)}: its token is mounted"
    if of(objects, "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"):
        yield "toolcell needs no rights in the cluster"
    for found in of(objects, "Namespace"):
        if found["metadata"]["labels"].get("pod-security.kubernetes.io/enforce") != "restricted":
            yield f"{shown(found)}: pods are not held to the restricted standard"


def names_meet(objects):
    """Selectors find pods, ports and volumes exist, and each pod is found by a network policy for both ways."""
    labels = {shown(found): pod["metadata"]["labels"] for found, pod in pods(objects)}
    ports = {name: {port["name"] for found, pod in pods(objects) if shown(found) == name for c in pod["spec"]["containers"] for port in c["ports"]} for name in labels}
    selected = [(found, found["spec"]["selector"]) for found in of(objects, "Service")]
    selected += [(found, found["spec"]["selector"]["matchLabels"]) for found in of(objects, *WORKLOADS, "PodDisruptionBudget")]
    selected += [(found, found["spec"]["podSelector"].get("matchLabels", {})) for found in of(objects, "NetworkPolicy")]
    for found, selector in selected:
        hit = [name for name, own in labels.items() if matches(selector, own)]
        if not hit:
            yield f"{shown(found)}: no pod has these labels"
        named = [port.get("targetPort") for port in found["spec"].get("ports", [])]
        named += [port["port"] for rule in found["spec"].get("ingress", []) for port in rule.get("ports", [])] if found["kind"] == "NetworkPolicy" else []
        for port in named:
            if isinstance(port, str) and not all(port in ports[name] for name in hit):
                yield f"{shown(found)}: no container has the port {port}"
    for name, own in labels.items():
        types = {kind for found in of(objects, "NetworkPolicy") if matches(found["spec"]["podSelector"]["matchLabels"], own) for kind in found["spec"]["policyTypes"]}
        if types != {"Ingress", "Egress"}:
            yield f"{name}: network policies hold {sorted(types)} only"
    for found in of(objects, "NetworkPolicy"):
        for rule in [*found["spec"].get("ingress", []), *found["spec"].get("egress", [])]:
            if not rule.get("ports") or not (rule.get("from") or rule.get("to")) or {} in [*rule.get("from", []), *rule.get("to", [])]:
                yield f"{shown(found)}: a rule for everybody, or for every port"
    for found, pod in pods(objects):
        spec = pod["spec"]
        volumes = {volume["name"] for volume in spec.get("volumes", [])} | {claim["metadata"]["name"] for claim in found["spec"].get("volumeClaimTemplates", [])}
        mounted = {mount["name"] for container in spec["containers"] for mount in container.get("volumeMounts", [])}
        if volumes != mounted:
            yield f"{shown(found)}: volumes {sorted(volumes ^ mounted)} are not both there and mounted"
    for found in of(objects, "HorizontalPodAutoscaler"):
        target = found["spec"]["scaleTargetRef"]
        if f"{target['kind']} {target['name']}" not in labels:
            yield f"{shown(found)}: it scales nothing"
        for replicas in (other for other in of(objects, target["kind"]) if other["metadata"]["name"] == target["name"]):
            if "replicas" in replicas["spec"]:
                yield f"{shown(replicas)}: each `apply` would undo what the autoscaler has set"


def deadline(manifest):
    """The longest deadline of any tool, in seconds."""
    found = [DEADLINE]

    def look(table):
        for key, value in table.items():
            if key == "deadline":
                found.append(seconds(value))
            elif isinstance(value, dict):
                look(value)

    look(manifest)
    return max(found)


def drains(objects, manifest):
    """A replica is taken out, finishes every call, and is not killed before."""
    notice, drain = (seconds(manifest["http"][key]) for key in ("notice", "drain"))
    if drain <= deadline(manifest):
        yield f"drain, {drain:g} s, is not longer than the longest deadline, {deadline(manifest):g} s"
    for found, pod in pods(objects):
        if found["metadata"]["name"] != "toolcell":
            continue
        container = pod["spec"]["containers"][0]
        grace = pod["spec"]["terminationGracePeriodSeconds"]
        if grace < notice + drain + END + MARGIN:
            yield f"{shown(found)}: it is killed after {grace} s, and may take {notice + drain + END:g} s to end"
        ready, live = container["readinessProbe"], container["livenessProbe"]
        if ready["httpGet"]["path"] != "/readyz" or live["httpGet"]["path"] != "/healthz":
            yield f"{shown(found)}: /readyz is for readiness, /healthz for life"
        seen = ready["periodSeconds"] * ready["failureThreshold"]
        if notice < seen:
            yield f"{shown(found)}: it is seen not to be ready after {seen} s, and takes requests for {notice:g} s"
        rolling = found["spec"]["strategy"]["rollingUpdate"]
        if rolling["maxUnavailable"] != 0:
            yield f"{shown(found)}: an old replica may go before a new one is ready"


def secrets_are_made(objects, manifest):
    """Each key of a Secret that a pod reads is one that the page makes, and each variable of the manifest is set."""
    made = set(re.findall(r"--from-(?:file|literal)=([\w.-]+)", PAGE.read_text("utf-8")))
    text = json.dumps([pod for _, pod in pods(objects)])
    read = set(re.findall(r'"secretKeyRef": \{"key": "([^"]+)"', text))
    read |= {item["key"] for _, pod in pods(objects) for volume in pod["spec"].get("volumes", []) for item in volume.get("secret", {}).get("items", [])}
    if read - made:
        yield f"keys that nobody makes: {sorted(read - made)}"
    if "state" in manifest and "valkey" in text:
        wanted = set(re.findall(r'env:(\w+)', json.dumps(manifest)))
        names = set(re.findall(r'"name": "(\w+)", "valueFrom"', text))
        if wanted != names:
            yield f"variables {sorted(wanted ^ names)} are not both set and read"


def problems(objects, manifest):
    """All problems of one rendered folder."""
    for rule in (not_as_schemas, hardened, names_meet):
        yield from rule(objects)
    for rule in (drains, secrets_are_made):
        yield from rule(objects, manifest)


# What is not rendered.


def compose(manifest):
    """The compose file says what the pods say."""
    services = yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text("utf-8"))["services"]
    took = seconds(services["toolcell"]["stop_grace_period"])
    needs = sum(seconds(manifest["http"][key]) for key in ("notice", "drain")) + END
    if took < needs + MARGIN:
        yield f"compose: a replica is killed after {took:g} s, and may take {needs:g} s to end"
    for name in ("toolcell", "valkey"):
        service = services[name]
        if not (service.get("read_only") and service.get("cap_drop") == ["ALL"] and "no-new-privileges:true" in service.get("security_opt", [])):
            yield f"compose: {name} has more rights than it needs"
        if "ports" in service:
            yield f"compose: {name} is reached from outside"
    if "back" in services["nginx"]["networks"]:
        yield "compose: nginx reaches the state"
    host = manifest["state"]["shared"].split("://")[1].split(":")[0]
    if host not in services:
        yield f"compose: no service {host}"

    def lines(text):
        names = ("server 127", "server toolcell", "ssl_certificate", "#")
        return [line.split("#")[0].strip() for line in text.splitlines() if not line.strip().startswith(names)]

    documented = PROXY.read_text("utf-8").split("```nginx\n")[1].split("```")[0]
    if lines(documented) != lines((DEPLOY / "compose" / "nginx.conf").read_text("utf-8")):
        yield "compose: nginx.conf is not the configuration that is documented, and tested"


def container():
    """The built image runs as the packaged one does."""
    sys.path.insert(0, str(DEPLOY))
    import image

    text = (DEPLOY / "Containerfile").read_text("utf-8")
    for line in (
        f"USER {image.NOBODY}:{image.NOBODY}", f"ENV PATH=/usr/bin HOME=/{image.HOME}", "WORKDIR /tools", "STOPSIGNAL SIGTERM",
        f'ENTRYPOINT ["/usr/bin/{image.NAME}"]', 'CMD ["serve"]',
    ):
        if line not in text.splitlines():
            yield f"Containerfile: no line {line!r}, as the image of `make dist` has it"
    sources = re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.MULTILINE)
    for source in " ".join(sources).split():
        if not (ROOT / source).exists():
            yield f"Containerfile: {source} is not there"
    rust = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))["workspace"]["package"]["rust-version"]
    if f"FROM rust:{rust}-" not in text:
        yield f"Containerfile: the compiler is not {rust}, the oldest that builds this"


def prometheus(objects):
    """Alerts say what is wrong, the autoscaler's figure is served by the adapter, and no panel lies over another."""
    groups = yaml.safe_load((DEPLOY / "prometheus" / "rules.yaml").read_text("utf-8"))["groups"]
    for rule in (rule for group in groups for rule in group["rules"] if "alert" in rule):
        if not rule.get("annotations", {}).get("summary") or rule.get("labels", {}).get("severity") not in ("page", "ticket"):
            yield f"rules: {rule['alert']} has no summary, or no severity"
    adapted = {rule["name"]["as"] for rule in yaml.safe_load((DEPLOY / "prometheus" / "adapter.yaml").read_text("utf-8"))}
    scaled = {metric["pods"]["metric"]["name"] for found in of(objects, "HorizontalPodAutoscaler") for metric in found["spec"]["metrics"] if metric["type"] == "Pods"}
    if adapted != scaled:
        yield f"adapter: figures {sorted(adapted ^ scaled)} are not both served and used"
    panels = json.loads((DEPLOY / "prometheus" / "dashboard.json").read_text("utf-8"))["panels"]
    if len({panel["id"] for panel in panels}) != len(panels):
        yield "dashboard: two panels have one number"
    taken = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        if cells & taken or at["x"] + at["w"] > 24:
            yield f"dashboard: {panel['title']} lies over another panel, or beyond the edge"
        taken |= cells


def rolls_out(scratch):
    """Tools from a ConfigMap: another lock is another pod, and the same one is the same."""

    def template(name, lock):
        folder = dict(shown_overlays(scratch / name, lock)).get("configmap")
        objects = render(folder)
        (tools_map,) = (found for found in of(objects, "ConfigMap") if found["metadata"]["name"].startswith("toolcell-tools-"))
        held = {**tools_map.get("data", {}), **tools_map.get("binaryData", {})}
        if held.get("toolcell.lock") != lock or base64.b64decode(held["weather.wasm"])[:4] != b"\0asm":
            raise SystemExit(f"manifests: the ConfigMap holds {sorted(held)}")
        (deployment,) = of(objects, "Deployment")
        return hashlib.sha256(json.dumps(deployment["spec"]["template"], sort_keys=True).encode()).hexdigest()

    first, again, other = (template(name, lock) for name, lock in (("first", "a"), ("again", "a"), ("other", "b")))
    if first != again or first == other:
        yield "a changed lock does not roll out, or an unchanged one does"


def seccomp():
    """The profile is one that a container runtime reads, and lets namespaces be made, but no more than that."""
    profile = json.loads((DEPLOY / "kubernetes" / "components" / "all-walls" / "seccomp.json").read_text("utf-8"))
    if profile["defaultAction"] != "SCMP_ACT_ERRNO" or {rule["action"] for rule in profile["syscalls"]} != {"SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO"}:
        yield "seccomp: what is not listed must be refused"
    whole = [name for rule in profile["syscalls"] for name in rule["names"] if rule["action"] == "SCMP_ACT_ALLOW" and not rule.get("args")]
    listed = [name for rule in profile["syscalls"] for name in rule["names"]]
    if len(set(listed)) != len(listed) or whole != sorted(whole):
        yield "seccomp: a name stands twice, or out of order"
    for needed in ("unshare", "mount", "open_tree", "move_mount", "pivot_root", "umount2", "landlock_create_ruleset", "seccomp"):
        if needed not in listed:
            yield f"seccomp: {needed} is refused, which a wall needs"
    for refused in ("bpf", "init_module", "kexec_load", "keyctl", "perf_event_open", "ptrace", "reboot", "setns", "swapon", "userfaultfd", "io_uring_setup"):
        if refused in listed:
            yield f"seccomp: {refused} is let through"
    for bounded in ("clone", "unshare"):
        if bounded in whole:
            yield f"seccomp: {bounded} may have any argument"


# The self-test.


def replaced(objects, kind, change):
    changed = copy.deepcopy(objects)
    change(next(found for found in changed if found["kind"] == kind))
    return changed


def pod(change):
    return lambda found: change(found["spec"]["template"]["spec"])


BREAKS = {
    "an unknown key": ("Deployment", pod(lambda spec: spec.update(terminationGracePeriod=60))),
    "a wrong type": ("Deployment", pod(lambda spec: spec["containers"][0].update(args="serve"))),
    "a token": ("Deployment", pod(lambda spec: spec.pop("automountServiceAccountToken"))),
    "root": ("Deployment", pod(lambda spec: spec["securityContext"].update(runAsUser=0))),
    "no seccomp": ("Deployment", pod(lambda spec: spec["securityContext"].pop("seccompProfile"))),
    "a writable root": ("Deployment", pod(lambda spec: spec["containers"][0]["securityContext"].pop("readOnlyRootFilesystem"))),
    "capabilities": ("Deployment", pod(lambda spec: spec["containers"][0]["securityContext"].pop("capabilities"))),
    "no limit": ("Deployment", pod(lambda spec: spec["containers"][0]["resources"].pop("limits"))),
    "a short grace": ("Deployment", pod(lambda spec: spec.update(terminationGracePeriodSeconds=30))),
    "a probe of the wrong path": ("Deployment", pod(lambda spec: spec["containers"][0]["livenessProbe"]["httpGet"].update(path="/readyz"))),
    "a slow probe": ("Deployment", pod(lambda spec: spec["containers"][0]["readinessProbe"].update(periodSeconds=30))),
    "a volume nobody mounts": ("Deployment", pod(lambda spec: spec["volumes"].append({"name": "other", "emptyDir": {}}))),
    "a key nobody makes": ("Deployment", pod(lambda spec: spec["containers"][0]["env"][0]["valueFrom"]["secretKeyRef"].update(key="other"))),
    "fixed replicas": ("Deployment", lambda found: found["spec"].update(replicas=3)),
    "an old replica that goes first": ("Deployment", lambda found: found["spec"]["strategy"]["rollingUpdate"].update(maxUnavailable=1)),
    "a service of nothing": ("Service", lambda found: found["spec"]["selector"].update({"app.kubernetes.io/name": "other"})),
    "a port of nothing": ("Service", lambda found: found["spec"]["ports"][0].update(targetPort="other")),
    "a policy of nothing": ("NetworkPolicy", lambda found: found["spec"]["podSelector"]["matchLabels"].update({"app.kubernetes.io/name": "other"})),
    "everybody": ("NetworkPolicy", lambda found: found["spec"]["ingress"][0].pop("from")),
    "every port": ("NetworkPolicy", lambda found: found["spec"]["egress"][1].pop("ports")),
    "a budget of nothing": ("PodDisruptionBudget", lambda found: found["spec"]["selector"]["matchLabels"].update({"app.kubernetes.io/name": "other"})),
    "an autoscaler of nothing": ("HorizontalPodAutoscaler", lambda found: found["spec"]["scaleTargetRef"].update(name="other")),
    "a lax namespace": ("Namespace", lambda found: found["metadata"]["labels"].update({"pod-security.kubernetes.io/enforce": "baseline"})),
}


def self_test(manifest):
    objects = render(DEPLOY / "kubernetes" / "base")
    unseen = [what for what, (kind, change) in BREAKS.items() if not list(problems(replaced(objects, kind, change), manifest))]
    longer = copy.deepcopy(manifest)
    longer["components"] = {"slow": {"source": "slow.wasm", "limits": {"deadline": "2m"}}}
    if not list(drains(objects, longer)):
        unseen.append("a deadline longer than drain")
    if unseen:
        raise SystemExit(f"manifests: nothing notices {', '.join(unseen)}")
    print(f"manifests: {len(BREAKS) + 1} faults are noticed")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--render", metavar="OVERLAY", help="print what kustomize makes of this overlay")
    parser.add_argument("--self-test", action="store_true", help="break files, and see that it is noticed")
    args = parser.parse_args()
    if args.render:
        print(yaml.safe_dump_all(render(args.render), sort_keys=False), end="")
        return
    manifest = tomllib.loads((DEPLOY / "sample" / "toolcell.toml").read_text("utf-8"))
    if args.self_test:
        self_test(manifest)
        return
    wrong, count = [], 0
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        listed = [(overlay.name, overlay) for overlay in overlays()] + list(shown_overlays(scratch / "page"))
        components = {path.name for path in (DEPLOY / "kubernetes" / "components").iterdir()}
        for name, overlay in listed:
            objects = render(overlay)
            count += len(objects)
            wrong += [f"{name}: {problem}" for problem in problems(objects, manifest)]
            text = (overlay / "kustomization.yaml").read_text("utf-8")
            components -= set(re.findall(r"components/([\w-]+)", text))
        wrong += [f"no overlay of the page uses components/{name}" for name in sorted(components)]
        wrong += rolls_out(scratch)
    wrong += [*compose(manifest), *container(), *prometheus(render(DEPLOY / "kubernetes" / "base")), *seccomp()]
    if wrong:
        raise SystemExit("\n".join(f"manifests: {problem}" for problem in wrong))
    print(f"manifests: {len(listed)} overlays with {count} objects are right by Kubernetes {', '.join(VERSIONS)}")


if __name__ == "__main__":
    main()
