# Chooses the runtime, asks it, and answers.
RUNTIMES = {"vllm": Vllm, "sglang": Sglang, "transformers": Transformers}


class Refused(Exception):
    """What this Python lacks; args: the kind, and the details for the answer."""


def end_with_parent():
    """Lets the system end this process when the program that started it is gone (Linux)."""
    with contextlib.suppress(Exception):
        import ctypes

        ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)


def find_installed_packages():
    """Adds the packages that isolated mode hides: of the user, and of PYTHONPATH before others."""
    if sys.prefix == sys.base_prefix:
        site.addsitedir(site.getusersitepackages())
    packages = [at for at, path in enumerate(sys.path) if path.endswith("-packages")]
    first = min(packages, default=len(sys.path))
    sys.path[first:first] = REQUEST["python_path"]


def answer(content):
    with os.fdopen(REQUEST["answer"], "w") as out:
        json.dump(content, out)


def choose_runtime():
    found = [name for name in RUNTIMES if importlib.util.find_spec(name)]
    # vLLM and SGLang bring transformers with them.
    wanted = REQUEST["runtime"]
    if wanted and wanted not in found or not found:
        raise Refused("absent", {"found": found, "wanted": wanted})
    servers = [name for name in found if name != "transformers"]
    if not wanted and len(servers) > 1:
        raise Refused("several", {"found": servers})
    return wanted or found[0]


def load():
    chosen = choose_runtime()
    show_only_scales()
    runtime = RUNTIMES[chosen]()
    result = {"runtime": chosen, "version": runtime.version, "turns_on": None,
              "python": sys.version.split()[0]}
    try:
        asked = REQUEST["kv_cache_dtype"]
        if not asked and runtime.tells_cache:
            modules = runtime.load("auto")
            made = {module["cache"] for module in modules if re.search("fp8|fp4", module["cache"])}
            result["turns_on"], result["cache"] = bool(made), min(made, default="")
            result["modules"] = modules if result["turns_on"] else runtime.load("fp8")
        else:
            result["modules"] = runtime.load(asked or "fp8")
    except MemoryError:
        raise
    except Exception as error:
        if re.search("can't allocate memory|out of memory", str(error)):
            raise MemoryError from error
        traceback.print_exc()
        result["failure"] = f"{type(error).__name__}: {error}"
    return result


def main():
    end_with_parent()
    find_installed_packages()
    try:
        answer(load())
    except Refused as refused:
        answer({"refused": refused.args[0], **refused.args[1]})
    except MemoryError:
        answer({"refused": "memory"})


if __name__ == "__main__":
    main()
