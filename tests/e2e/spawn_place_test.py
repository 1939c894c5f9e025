"""posix_spawn that goes into another directory first: the program is the one of that name there, and that file is judged."""
import unittest

import as_bare

SPAWNS = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
int main(int count, char **words) {
    posix_spawn_file_actions_t actions;
    const char *way = words[1], *folder = words[2];
    char *program[] = {words[3], NULL};
    int fd = open(folder, O_RDONLY | O_CLOEXEC), lowest = dup(0), status = -1;
    pid_t pid;
    posix_spawn_file_actions_init(&actions);
    if (count > 4) setenv("PATH", words[4], 1);
    if (strcmp(way, "number") == 0) {
        posix_spawn_file_actions_addfchdir_np(&actions, fd);
    } else if (strcmp(way, "opened") == 0) {
        posix_spawn_file_actions_addopen(&actions, 77, folder, O_RDONLY, 0);
        posix_spawn_file_actions_addfchdir_np(&actions, 77);
    } else {
        posix_spawn_file_actions_addchdir_np(&actions, "..");
        posix_spawn_file_actions_addclose(&actions, lowest);
        posix_spawn_file_actions_addchdir_np(&actions, folder);
    }
    int error = (strcmp(way, "path") == 0 || count > 4 ? posix_spawnp : posix_spawn)(&pid, program[0], &actions, NULL, program, environ);
    if (error == 0) waitpid(pid, &status, 0);
    printf("%d %x %d\n", error, status, dup(0) - lowest);
    return count == 0;
}
"""
SPAWNED = """
#include <stdlib.h>
int main(void) { return malloc(77777) == NULL || getenv("LD_PRELOAD") != NULL; }
"""


STATIC = ["statically linked: there is no dynamic loader that could load memlog"]
GONE = "it ended before memlog could look at it"  # so short a life on a busy machine, whose reason nobody can be given


class SpawnPlace(as_bare.Case):
    def setUp(self):
        super().setUp()
        self.spawns = self.build("spawns", SPAWNS)
        self.loaded, self.static = self.folder / "loaded", self.folder / "static"
        for folder, options in ((self.loaded, ()), (self.static, ("-static",))):
            folder.mkdir()
            self.build("spawned", SPAWNED, *options).rename(folder / "spawned")

    def spawned(self, way, folder, here=None, words=("./spawned",), name="spawned"):
        """Whether the program in that folder was recorded, and what is said of others, with another one of its name here."""
        if here is not None:
            (here / "spawned").rename(self.folder / "spawned")
        report = self.assert_as_bare(self.spawns, way, folder, *words)
        if here is not None:
            (self.folder / "spawned").rename(here / "spawned")
        reasons = [entry.get("reason") for entry in report.get("unrecorded", [])]
        return [entry["total_bytes"] >= 77777 for entry in self.entries(report, name)], STATIC if reasons == [GONE] else reasons

    def test_what_can_be_recorded_there_is(self):
        for way in ("name", "path", "number", "opened"):
            with self.subTest(way):
                self.assertEqual(self.spawned(way, self.loaded), ([True], []))
                self.assertEqual(self.spawned(way, self.loaded, here=self.static), ([True], []))

    def test_what_cannot_sees_nothing_of_memlog(self):
        for way in ("name", "path", "number"):
            with self.subTest(way):
                self.assertEqual(self.spawned(way, self.static), ([], STATIC))
                self.assertEqual(self.spawned(way, self.static, here=self.loaded), ([], STATIC))

    def test_relative_folders_of_path_are_those_of_the_child(self):
        for path in (":/usr/bin", "nowhere:.:/usr/bin"):
            for way in ("name", "number"):
                with self.subTest(path=path, way=way):
                    words = ("spawned", path)
                    self.assertEqual(self.spawned(way, self.loaded, here=self.static, words=words), ([True], []))
                    self.assertEqual(self.spawned(way, self.static, here=self.loaded, words=words), ([], STATIC))

    def test_a_folder_of_the_name_is_passed_over(self):
        (self.folder / "decoy" / "spawned").mkdir(parents=True)
        words = ("spawned", f"{self.folder}/decoy:{self.static}")
        self.assertEqual(self.spawned("name", self.folder, words=words), ([], STATIC))

    def test_a_relative_interpreter_is_that_of_the_child(self):
        for place, other in ((self.loaded, self.static), (self.static, self.loaded)):
            script = place / "script"
            script.write_text("#! ./spawned\n")
            script.chmod(0o755)
            recorded, unrecorded = self.spawned("name", place, here=other, words=("./script",), name="script")
            self.assertEqual((recorded, unrecorded), ([], STATIC) if place == self.static else ([True], []))


if __name__ == "__main__":
    unittest.main()
