"""Which engine it is, by all that can say so: the table of docs/how-to/settings.md, line by line."""

from pathlib import Path

import pytest

from accord import errors
from accord.home import Home
from accord.operations.context import tokens_of
from accord.settings import Settings
from accord.settings.engine import KEYS, unused
from accord.settings.files import trust

pytestmark = pytest.mark.covers("S10", "T3.17")

SECRET = "s3cr3t/@:?"
QUOTED = "s3cr3t%2F%40%3A%3F"

# The document's own example.
EXAMPLE = """\
communication:
  backend: "{backend}"  # file, redis, sqlite, firebase
  settings:
    lock_timeout: 31
    transaction_dir: "/tmp/agent-conductor-transactions"
    backup_count: 6
    redis_host: "localhost"
    redis_port: 6379
    redis_db: 0
    database_path: "/var/lib/agent-conductor/state.db"
    connection_pool_size: 10
    project_id: "agent-conductor-prod"
    service_account_key_path: "/etc/firebase/service-account.json"
"""


class Place:
    """A home and a working directory in which there may be files."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.work = folder / "work"
        self.home.mkdir(mode=0o700)
        self.work.mkdir()

    def settings(self, flag: str = "", **env: str) -> Settings:
        return Settings(str(self.home), str(self.work), env, {"engine": flag} if flag else {})

    def of_home(self, text: str) -> str:
        (self.home / "accord.yml").write_text(text)
        return str(self.home / "accord.yml")

    def of_project(self, text: str) -> str:
        path = self.work / "accord.yml"
        path.write_text(text)
        trust(str(path), str(self.home))
        return str(path)

    def engine(self, flag: str = "", **env: str) -> str:
        return str(self.settings(flag, **env)["engine"])


@pytest.fixture
def there(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize(
    ("backend", "expected"),
    [
        ("file", "files:{home}/store"),
        ("files", "files:{home}/store"),
        ("sqlite", "sqlite:/var/lib/agent-conductor/state.db"),
        ("redis", "redis://localhost:6379/0"),
        ("rediss", "rediss://localhost:6379/0"),
        ("etcd", "etcd://localhost:2379"),
        ("firebase", "firebase://agent-conductor-prod?key=/etc/firebase/service-account.json"),
        ("memory", "memory:"),
    ],
)
def test_the_documents_own_example(backend: str, expected: str, there: Place) -> None:
    path = there.of_home(EXAMPLE.format(backend=backend))
    settings = there.settings()
    assert settings.find("engine") == (expected.format(home=there.home), path)
    assert settings.find("lock_timeout_s") == (31, path)
    assert settings.find("backup_count") == (6, path)
    without_effect = {part.name for part in unused(settings)}
    assert {"transaction_dir", "connection_pool_size"} <= without_effect
    assert not without_effect & {name for name, key in KEYS.items() if backend in key.engines or key.same_as}


FILE = "communication: {backend: redis, settings: {redis_host: filed, redis_port: 1}}\n"


FIREBASE = "communication: {backend: firebase, settings: {project_id: p, service_account_key_path: /own}}\n"
EMULATOR = {"FIREBASE_DATABASE_EMULATOR_HOST": "h:9", "GOOGLE_APPLICATION_CREDENTIALS": "/k"}


@pytest.mark.parametrize(
    ("flag", "env", "home", "expected"),
    [
        # What names the engine, the nearest first.
        ("memory:a", {"ACCORD_ENGINE": "memory:b", "COMMUNICATION_BACKEND": "redis"}, FILE, "memory:a"),
        ("", {"ACCORD_ENGINE": "memory:b", "COMMUNICATION_BACKEND": "redis"}, FILE, "memory:b"),
        ("", {"COMMUNICATION_BACKEND": "memory"}, FILE, "memory:"),
        ("", {}, FILE, "redis://filed:1/0"),
        ("", {}, "", ""),
        # Single values fill in what a backend's name leaves open; the environment's before the files'.
        ("", {"REDIS_HOST": "told"}, FILE, "redis://told:1/0"),
        ("", {"REDIS_PORT": "2"}, FILE, "redis://filed:2/0"),
        ("", {"COMMUNICATION_BACKEND": "redis"}, FILE, "redis://filed:1/0"),
        ("", {"COMMUNICATION_BACKEND": "redis"}, "", "redis://localhost:6379/0"),
        ("", {"COMMUNICATION_BACKEND": "redis", "REDIS_HOST": "told", "REDIS_PORT": "3"}, "", "redis://told:3/0"),
        ("", {"COMMUNICATION_BACKEND": "sqlite", "SQLITE_DB": "/a/b.db"}, FILE, "sqlite:/a/b.db"),
        ("", {"COMMUNICATION_BACKEND": "sqlite"}, FILE, ""),
        ("", {"COMMUNICATION_BACKEND": "firebase", "FIREBASE_PROJECT_ID": "p-1"}, FILE, "firebase://p-1"),
        ("", {"COMMUNICATION_BACKEND": "redis", "REDIS_HOST": "::1"}, "", "redis://[::1]:6379/0"),
        ("", {"COMMUNICATION_BACKEND": ""}, FILE, "redis://filed:1/0"),
        # Those of other engines, and of none, have no effect.
        ("", {"REDIS_HOST": "told", "REDIS_PORT": "x"}, "communication: {backend: sqlite}\n", ""),
        ("", {"REDIS_HOST": "told"}, "engine: memory:h\n", "memory:h"),
        ("", {"REDIS_HOST": "told"}, "", ""),
        ("", {"SQLITE_DB": "/a/b.db"}, "", ""),
        ("", {"SQLITE_DB": "/a/b.db"}, FILE, "redis://filed:1/0"),
        # A URL says all by itself.
        ("", {"REDIS_HOST": "told"}, "engine: redis://filed/7\n", "redis://filed/7"),
        ("redis://named", {"REDIS_HOST": "told"}, FILE, "redis://named"),
        ("", {"COMMUNICATION_BACKEND": "redis"}, "engine: redis://filed/7\n", "redis://localhost:6379/0"),
        # Firebase's own tools look here, where nothing nearer says it.
        ("", {"GOOGLE_APPLICATION_CREDENTIALS": "/k"}, "engine: firebase://p\n", "firebase://p?key=/k"),
        ("", {"GOOGLE_APPLICATION_CREDENTIALS": "/k"}, "engine: firebase://p?key=/own\n", "firebase://p?key=/own"),
        ("", {"FIREBASE_DATABASE_EMULATOR_HOST": "h:9"}, "engine: firebase://p/x\n", "firebase://p/x?emulator=h:9"),
        ("", {"FIREBASE_DATABASE_EMULATOR_HOST": "h:9"}, "engine: firebase://p?key=/own\n", "firebase://p?key=/own"),
        ("", EMULATOR, FIREBASE, "firebase://p?emulator=h:9"),
        ("", EMULATOR, "engine: firebase://p\n", "firebase://p?emulator=h:9"),
        ("", EMULATOR, FILE, "redis://filed:1/0"),
        # `file` is another word for `files`.
        ("file:/a/b", {}, "", "files:/a/b"),
        ("", {"ACCORD_ENGINE": "file:/a/b"}, "", "files:/a/b"),
    ],
)  # fmt: skip
def test_the_table(flag: str, env: dict[str, str], home: str, expected: str, there: Place) -> None:
    if home:
        there.of_home(home)
    assert there.engine(flag, **env) == expected


def test_a_project_comes_before_the_home_value_by_value(there: Place) -> None:
    of_home = there.of_home("communication: {backend: sqlite, settings: {redis_host: mine, redis_db: 4}}\n")
    of_project = there.of_project("communication: {backend: redis, settings: {redis_host: theirs}}\n")
    settings = there.settings(REDIS_PORT="9")
    assert settings.find("engine") == ("redis://theirs:9/4", of_project)
    parts = {part.name: (part.value, part.source) for part in settings.chosen_engine().parts}
    assert parts == {
        "redis_host": ("theirs", of_project),
        "redis_port": (9, "$REDIS_PORT"),
        "redis_db": (4, of_home),
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("communication: {backend: sqlite, settings: {database_path: data/x.db}}\n", "sqlite:{folder}/data/x.db"),
        ("engine: sqlite:data/x.db\n", "sqlite:{folder}/data/x.db"),
        ("engine: file:data\n", "files:{folder}/data"),
        (
            "communication: {backend: firebase, settings: {project_id: p, service_account_key_path: my key.json}}\n",
            "firebase://p?key={folder}/my%20key.json",
        ),
        ("engine: firebase://p/x?key=my%20key.json&emulator=h:1\n", "firebase://p/x?key={folder}/my%20key.json&emulator=h:1"),
        ("engine: rediss://h?ca=ca.pem\n", "rediss://h?ca={folder}/ca.pem"),
    ],
)  # fmt: skip
def test_a_path_is_where_it_was_written_down(text: str, expected: str, there: Place) -> None:
    there.of_project(text)
    assert there.engine() == expected.format(folder=there.work)
    below = there.work / "below"
    below.mkdir()
    assert Settings(str(there.home), str(below), {}, {})["engine"] == expected.format(folder=there.work)


def test_a_path_in_a_variable_is_in_the_working_directory(there: Place) -> None:
    assert there.engine(COMMUNICATION_BACKEND="sqlite", SQLITE_DB="x.db") == f"sqlite:{there.work}/x.db"
    env = {"COMMUNICATION_BACKEND": "firebase", "FIREBASE_PROJECT_ID": "p", "GOOGLE_APPLICATION_CREDENTIALS": "k.json"}
    assert there.engine(**env) == f"firebase://p?key={there.work}/k.json"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("engine: 'memory:'\ncommunication: {backend: redis}", "chooses an engine twice"),
        ("communication: {backed: redis}", "perhaps communication.backend is meant"),
        ("communication: {settings: {redis_hots: x}}", "perhaps communication.settings.redis_host"),
        ("redis_host: x", "perhaps communication.settings.redis_host"),
        ("backend: redis", "perhaps communication.backend"),
        ("comunication: {}", "perhaps communication is meant"),
        ("communication: {settings: {qqqq: 1}}", "there are engine"),
        ("communication: redis", "consists of backend and settings"),
        ("communication: {settings: redis}", "consists of backend and settings"),
        ("communication: [redis]", "consists of backend and settings"),
        ("communication: {backend: }", "communication.backend should be"),
        ("communication: {backend: [redis]}", "communication.backend should be"),
        ("communication: {settings: {redis_port: 70000}}", "communication.settings.redis_port should be a whole"),
        ("communication: {settings: {redis_port: x}}", "communication.settings.redis_port should be a whole"),
        ("communication: {settings: {redis_host: 'a:1'}}", "redis_host should be"),
        ("communication: {settings: {redis_host: 'a/b'}}", "redis_host should be"),
        ("communication: {settings: {redis_host: 'u:p@h'}}", "redis_host should be"),
        ("communication: {settings: {project_id: 'a?b'}}", "project_id should be"),
        ("communication: {settings: {etcd_hosts: []}}", "etcd_hosts should be"),
        ("communication: {settings: {lock_timeout: 0}}", "lock_timeout should be"),
        ("lock_timeout_s: 3\ncommunication: {settings: {lock_timeout: 3}}", "lock_timeout_s twice"),
        ("communication: {settings: {lock_timeout: 3}}\nlock_timeout_s: 3", "lock_timeout_s twice"),
        ("communication: {settings: {redis_db: 1, redis_db: 2}}", "'redis_db' twice"),
        ("communication: {backend: redis, backend: etcd}", "'backend' twice"),
        ("communication: {}\ncommunication: {}", "'communication' twice"),
        ("communication: &a {settings: *a}", "it sets 'communication.settings.settings'"),
    ],
)
def test_a_file_that_is_wrong_says_where_and_what(text: str, reason: str, there: Place) -> None:
    path = there.of_home(text)
    with pytest.raises(errors.InvalidConfig) as refused:
        there.engine()
    assert reason in str(refused.value)
    assert refused.value.details["path"] == path


@pytest.mark.parametrize("text", ["communication:", "communication: {}", "communication: {settings: }"])
def test_a_file_that_says_nothing_of_it(text: str, there: Place) -> None:
    there.of_home(text)
    assert there.engine() == ""


@pytest.mark.parametrize(
    ("named", "near"), [("reddis", "redis"), ("sqlite3", "sqlite"), ("FILES", "files"), ("firebase-x", "firebase")]
)
def test_an_unknown_backend(named: str, near: str, there: Place) -> None:
    for env, where in (({"COMMUNICATION_BACKEND": named}, "$COMMUNICATION_BACKEND"), ({}, "accord.yml")):
        if not env:
            there.of_home(f"communication: {{backend: {named}}}")
        with pytest.raises(errors.UnknownEngine) as refused:
            there.engine(**env)
        assert repr(named) in str(refused.value)
        assert where in str(refused.value)
        assert near in str(refused.value)


def test_a_backend_that_lacks_something(there: Place) -> None:
    with pytest.raises(errors.InvalidConfig, match=r"project_id or \$FIREBASE_PROJECT_ID"):
        there.engine(COMMUNICATION_BACKEND="firebase")
    with pytest.raises(errors.InvalidConfig, match=r"\$REDIS_PORT: redis_port should be"):
        there.engine(COMMUNICATION_BACKEND="redis", REDIS_PORT="x")


@pytest.mark.parametrize(
    "text",
    [
        "communication: {backend: redis}",
        "communication: {settings: {redis_host: evil}}",
        "communication: {settings: {database_path: /x}}",
        "communication: {settings: {service_account_key_path: /x}}",
        "engine_password_file: /x",
        "engine: redis://evil",
    ],
)
def test_a_project_says_nothing_of_the_engine_before_it_is_trusted(text: str, there: Place) -> None:
    (there.work / "accord.yml").write_text(text)
    with pytest.raises(errors.NotTrusted):
        there.engine()
    there.of_project(text)
    there.engine()


@pytest.mark.parametrize("text", ["{lock_timeout: 3}", "{backup_count: 3}", "{transaction_dir: /x}"])
def test_what_is_not_of_the_engine_needs_no_trust(text: str, there: Place) -> None:
    (there.work / "accord.yml").write_text(f"communication: {{settings: {text}}}")
    assert there.engine() == ""


def password_file(there: Place, text: str = f"{SECRET}\n", mode: int = 0o600) -> Path:
    path = there.home / "password"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_where_a_password_comes_from(there: Place) -> None:
    there.of_home(f"engine: redis://ann@h/0\nengine_password_file: {password_file(there).name}\n")
    url = f"redis://ann:{QUOTED}@h/0"
    settings = there.settings()
    assert settings.complete(settings["engine"]) == url
    assert settings.password_place(settings["engine"]) == str(there.home / "password"), "beside the file that names it"
    settings = there.settings(ACCORD_ENGINE_PASSWORD="other")
    assert settings.complete(settings["engine"]) == "redis://ann:other@h/0"
    settings = there.settings(ACCORD_ENGINE="redis://ben:third@h/1", ACCORD_ENGINE_PASSWORD="other")
    assert settings["engine"] == "redis://ben@h/1"
    assert settings.complete(settings["engine"]) == "redis://ben:third@h/1"
    assert settings.password_place(settings["engine"]) == "$ACCORD_ENGINE"
    settings = there.settings(ACCORD_ENGINE=f"redis://:{QUOTED}@h/1")
    assert settings.complete(settings["engine"]) == f"redis://:{QUOTED}@h/1"
    settings = there.settings("redis://x/0", ACCORD_ENGINE="redis://:third@h/1", ACCORD_ENGINE_PASSWORD="other")
    assert settings.complete(settings["engine"]) == "redis://:other@x/0", "that of a URL is for that URL alone"
    settings = there.settings(ACCORD_ENGINE="redis://:third@h/1", ACCORD_ENGINE_PASSWORD="other")
    assert settings.complete("redis://x/0") == "redis://:other@x/0"


def test_a_store_on_this_machine_has_no_password(there: Place) -> None:
    there.of_home("engine_password_file: /nowhere\n")
    settings = there.settings(ACCORD_ENGINE="sqlite:/a/b", ACCORD_ENGINE_PASSWORD="x")
    assert settings.complete(settings["engine"]) == "sqlite:/a/b"
    assert settings.password_place(settings["engine"]) == ""


@pytest.mark.parametrize(("text", "mode"), [("x", 0o644), ("x", 0o640), ("", 0o600), ("a\nb", 0o600), ("\x00", 0o600)])
def test_a_password_file_that_is_not_right(text: str, mode: int, there: Place) -> None:
    path = password_file(there, text, mode)
    there.of_home("engine: redis://h\nengine_password_file: password\n")
    settings = there.settings()
    with pytest.raises(errors.InvalidConfig) as refused:
        settings.complete(settings["engine"])
    assert refused.value.details["path"] == str(path)
    path.unlink()
    with pytest.raises(errors.FileUnreadable):
        settings.complete(settings["engine"])


@pytest.mark.parametrize(
    "url", ["redis://ann:s3cr3t@h", "redis://:s3c/r3t@h", "redis://h?password=s3cr3t", "redis:s3cr3t:s3cr3t@h"]
)
def test_a_password_where_others_see_it_is_refused_and_kept_nowhere(url: str, there: Place) -> None:
    path = there.of_home(f"engine: {url}\n")
    for settings, where in ((there.settings(), path), (there.settings(url), "--engine")):
        with pytest.raises(errors.InvalidConfig) as refused:
            settings["engine"]
        assert refused.value.details["path"] == where
        assert "3t" not in str(refused.value)
        assert "$ACCORD_ENGINE_PASSWORD" in str(refused.value) or "%2F" in str(refused.value)
    kept = [file.read_bytes() for file in (there.home / "cache").rglob("*") if file.is_file()]
    assert not any(b"s3c" in text for text in kept)


def test_agents_keep_their_tokens_whoever_logs_in(there: Place) -> None:
    def folder(**env: str) -> str:
        return tokens_of(Home(str(there.home)), there.settings(**env)).path

    same = folder(ACCORD_ENGINE="redis://h:6379/0")
    assert same == folder(ACCORD_ENGINE="redis://ann:secret@h:6379/0") == folder(ACCORD_ENGINE="redis://:x@h:6379/0")
    assert same == folder(COMMUNICATION_BACKEND="redis", REDIS_HOST="h")
    assert same != folder(ACCORD_ENGINE="redis://h:6379/1")
    assert folder() == folder(COMMUNICATION_BACKEND="sqlite") == f"{there.home}/agents"
