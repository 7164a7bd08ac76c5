import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.users import User
from tests.hubs import Hub

MEMORY = Path("/dev/shm")

# Whose tests are run twice, without a hub and with one in the home, which the commands then are done by.
BOTH_WAYS = ("test_words", "test_streams", "test_hostile", "test_settings")

# Of these, what is done without a hub.
ALONE = {
    # no command, or one that makes no home
    "test_without_a_verb_there_is_help",
    "test_the_demo_for_a_program",
    "test_help_has_one_placeholder_for_each_thing",
    "test_the_version_everywhere",
    "test_near_matches",
    "test_what_is_no_command_is_a_usage_error",
    "test_a_project_chooses_an_engine_only_once_it_is_trusted",  # and so has no store but that
    # what is written in place of the home's settings before there is a home, or what a process of its own imports
    "test_a_flag_wins_over_everything",
    "test_a_file_that_is_none",
    "test_a_pipe_in_the_place_of_a_file_is_not_waited_for",
    "test_a_file_is_read_once_for_each_change",
    # only `trust`, which needs its own process
    "test_trusting_what_is_not_there",
}

# Of others, what a hub could change.
TOO = {
    "test_a_link_or_a_folder_where_a_file_should_be",
    "test_a_removed_working_directory",
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    module, name = metafunc.module.__name__.rpartition(".")[2], metafunc.function.__name__
    if "user" in metafunc.fixturenames and ((module in BOTH_WAYS and name not in ALONE) or name in TOO):
        # What a hub does is compared with what is done alone by `test_both_ways`, too.
        ways = [pytest.param(False, id="alone"), pytest.param(True, id="hub", marks=pytest.mark.more)]
        metafunc.parametrize("has_hub", ways, indirect=True)


@pytest.fixture
def has_hub(request: pytest.FixtureRequest) -> bool:
    """Whether a hub runs in the home from the beginning."""
    return bool(getattr(request, "param", False))


@pytest.fixture
def user(has_hub: bool) -> Iterator[User]:
    """Somebody without a home yet; in memory, if the machine has that, where flushes cost nothing."""
    folder = Path(tempfile.mkdtemp(prefix="accord-test-", dir=MEMORY if MEMORY.is_dir() else None))
    folder.chmod(0o755)  # another user may look, where a test has one
    user = User(folder)
    hub = Hub(user.home, user.env)
    try:
        if has_hub:
            hub.start()
        yield user
        if has_hub:
            assert hub.statistics().get("requests"), "the hub was never asked, so that this shows nothing"
            assert hub.log("failure") == []
    finally:
        hub.close()
        shutil.rmtree(folder)


@pytest.fixture
def ann(user: User) -> User:
    """Somebody whose home has the agents ann and ben."""
    for name in ("ann", "ben"):
        user.json("register", name)
    return user
