"""How much a program puts into the folders that it may write: watched while it runs.

No kernel bounds that for a folder. So the room on its file system is looked at now and then, which
costs a call; only where that shrinks by as much as the program may use are its folders looked
through, for what is new in them since it began.
"""

import asyncio
import contextlib
import os
import stat
from collections.abc import Callable, Generator

import msgspec

from toolgate import clock
from toolgate.sandbox.policy import Policy

_EVERY = 0.25
# Clocks of file systems tick more slowly than ours.
_SLACK_NS = 2 * 10**9
_BLOCK = 512
# Of folders in each other. Who goes deeper hides something.
_DEEPEST = 100
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Room(msgspec.Struct, frozen=True):
    """What is left on a file system; one that does not count files says 0 of them."""

    written: int
    files: int

    @classmethod
    def at(cls, path: str) -> "Room":
        found = os.statvfs(path)
        return cls(found.f_bfree * found.f_frsize, found.f_ffree if found.f_files else 0)


class Growth:
    """Ends a program that has put more into its folders than it may."""

    def __init__(self, policy: Policy, end: Callable[[], None]) -> None:
        self.is_too_much = False
        self._policy = policy
        self._end = end
        self._since_ns = clock.unix_ns() - _SLACK_NS
        self._stopped = False
        # By folder, what is left before it has all that it may.
        self._until: dict[str, Room] = {}
        for path in policy.writable:
            self._put_off(path, Room(0, 0))

    async def watch(self) -> None:
        """Look until cancelled, or until it is too much."""
        try:
            while not self.is_too_much:
                await asyncio.sleep(_EVERY)
                self.is_too_much = await asyncio.to_thread(self._look)
            self._end()
        finally:
            self._stopped = True

    def _look(self) -> bool:
        return any(self._is_over(path) for path in self._until)

    def _is_over(self, path: str) -> bool:
        try:
            now, until = Room.at(path), self._until[path]
            if now.written >= until.written and now.files >= until.files:
                return False
            used = self._used(path)
        except OSError:
            # It may be gone, which frees room.
            return False
        most = self._policy
        if 0 < most.written < used.written or 0 < most.files < used.files:
            return True
        # Others write there as well: before it has all, there is less room by what it lacks.
        self._put_off(path, used)
        return False

    def _put_off(self, path: str, used: Room) -> None:
        most = self._policy
        try:
            now = Room.at(path)
        except OSError:
            return
        written = now.written - (most.written - used.written) if most.written else 0
        files = now.files - (most.files - used.files) if most.files and now.files else 0
        self._until[path] = Room(written, files)

    def _used(self, path: str) -> Room:
        """What is new in a folder, as far as it matters whether that is too much."""
        written = files = 0
        seen: set[int] = set()
        with contextlib.closing(_entries(path)) as entries:
            for one in entries:
                if self._stopped:
                    break
                if one is None:
                    return Room(self._policy.written + 1, self._policy.files + 1)
                is_again = one.st_nlink > 1 and one.st_ino in seen
                if one.st_ctime_ns < self._since_ns or is_again:
                    continue
                if one.st_nlink > 1 and not stat.S_ISDIR(one.st_mode):
                    seen.add(one.st_ino)
                written += one.st_blocks * _BLOCK
                files += 1
                if 0 < self._policy.written < written or 0 < self._policy.files < files:
                    break
        return Room(written, files)


def _entries(path: str) -> Generator[os.stat_result | None]:
    """All that is in a folder, no link followed; `None` where it is too deep to look through."""
    if not os.path.isdir(path):  # noqa: PTH112  no object is made of what a program may name
        yield os.lstat(path)
        return
    with contextlib.ExitStack() as whole:
        opened: list[_Folder] = []
        whole.callback(lambda: [one.close() for one in opened])
        opened.append(_Folder(path))
        while opened:
            entry = next(opened[-1].entries, None)
            if entry is None:
                opened.pop().close()
                continue
            try:
                found = entry.stat(follow_symlinks=False)
                yield found
                if stat.S_ISDIR(found.st_mode):
                    if len(opened) >= _DEEPEST:
                        yield None
                        return
                    opened.append(_Folder(entry.name, opened[-1].descriptor))
            except OSError:
                # Gone meanwhile, or another's.
                continue


class _Folder:
    """One that is being looked through."""

    def __init__(self, name: str, below: int | None = None) -> None:
        self.descriptor = os.open(name, _FOLDER, dir_fd=below)
        try:
            self.entries = os.scandir(self.descriptor)
        except OSError:
            os.close(self.descriptor)
            raise

    def close(self) -> None:
        self.entries.close()
        os.close(self.descriptor)
