package ssh

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/ssh/internal/wire"
	"github.com/openpai/paictl/test/runnable"
)

// shells returns the shell commands of Debian, RHEL and Alpine.
func shells() map[string][]string {
	return map[string][]string{"sh": {"sh"}, "dash": {"dash"}, "bash": {"bash", "--posix"}, "busybox": {"busybox", "sh"}}
}

func TestEveryScriptIsCorrectShell(t *testing.T) {
	programs := map[string]string{
		"upload_check":    checkScript,
		"upload_finish":   finishScript,
		"run":             wire.Run("echo 'it''s'"),
		"hold":            wire.Hold("cat"),
		"sftp server":     wire.SFTPServer,
		"sudo":            wire.Sudo("0123", wire.SFTPServer),
		"direct":          wire.Direct(wire.SFTPServer),
		"run of an error": wire.Run("if true; then"),
	}
	for name, words := range shells() {
		for what, program := range programs {
			t.Run(what+" in "+name, func(t *testing.T) {
				runnable.Need(t, words[0])
				cmd := exec.CommandContext(t.Context(), words[0], append(words[1:], "-n")...)
				cmd.Stdin = strings.NewReader(program)
				out, err := cmd.CombinedOutput()
				require.NoError(t, err, string(out))
			})
		}
	}
}

func TestAProgramWithoutItsLastLineDoesNothing(t *testing.T) {
	for name, words := range shells() {
		t.Run(name, func(t *testing.T) {
			runnable.Need(t, words[0])
			dir := t.TempDir()
			program := wire.Run("touch done")
			for cut := 0; cut <= strings.LastIndex(program, "}"); cut += 7 {
				cmd := exec.CommandContext(t.Context(), words[0], append(words[1:], "-s")...)
				cmd.Dir = dir
				cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a watcher would end the test
				cmd.Stdin = strings.NewReader(program[:cut])
				_ = cmd.Run()
				require.NoFileExists(t, filepath.Join(dir, "done"), "cut at %d", cut)
			}
		})
	}
}

func TestEveryShellRunsTheUploadScripts(t *testing.T) {
	const sum = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03" // of "hello\n"
	without := t.TempDir()                                                         // openssl
	runnable.Write(t, without+"/openssl", "#!/bin/sh\nexit 1\n")
	all := shells()
	for name, words := range shells() {
		all[name+" without openssl"] = words
	}
	for name, words := range all {
		t.Run(name, func(t *testing.T) {
			runnable.Need(t, words[0])
			root := t.TempDir()
			run := func(manifest, script string) string {
				cmd := exec.CommandContext(t.Context(), words[0], append(words[1:], "-s")...)
				cmd.Env = append(os.Environ(), "PAICTL_ROOT="+root)
				if strings.HasSuffix(name, "without openssl") {
					cmd.Env = append(cmd.Env, "PATH="+without+":"+os.Getenv("PATH"))
				}
				cmd.Stdin = strings.NewReader("manifest='" + manifest + "'\n" + script)
				out, err := cmd.CombinedOutput()
				require.NoError(t, err, string(out))
				return string(out)
			}
			check := sum + " 6 81a4 644 .paictl-x /etc/new dir/f 1\n" + sum + " 6 81a4 644 .paictl-y /etc/b"
			assert.Equal(t, "root "+root+"\nsend 0 0\nsend 1 0\n", run(check, checkScript))
			require.NoError(t, os.WriteFile(root+"/etc/new dir/.paictl-x", []byte("hello\n"), 0o600))
			require.NoError(t, os.WriteFile(root+"/etc/.paictl-y", []byte("hullo\n"), 0o600))
			finish := sum + " 644 .paictl-x /etc/new dir/f 1\n" + sum + " 644 .paictl-y /etc/b"
			got := run(finish, finishScript)
			assert.Contains(t, got, "done 0\n")
			assert.Contains(t, got, "bad 1 ")
			assert.NoFileExists(t, root+"/etc/.paictl-y")
			assert.Equal(t, "root "+root+"\nsend 1 0\n", run(check, checkScript))
			require.NoError(t, os.Chmod(root+"/etc/new dir/f 1", 0o600))
			assert.Contains(t, run(check, checkScript), "mode 0\n")
		})
	}
}

func FuzzQuote(f *testing.F) {
	f.Add("it's")
	f.Add("a'\\''b\n' )\n")
	f.Fuzz(func(t *testing.T, body string) {
		if wire.Check(body) != nil {
			return
		}
		for _, program := range []string{wire.Run(body), wire.Hold(body)} {
			got, held, err := wire.Body(program)
			require.NoError(t, err)
			assert.Equal(t, body, got)
			assert.Equal(t, program == wire.Hold(body), held)
		}
	})
}

func FuzzKnownHosts(f *testing.F) {
	f.Add("host ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ7bUfLG8G2ShuSPSmpyqxRHRhyKEzJG7dhLiBpVBYtU\n")
	f.Add("@cert-authority *.x ssh-rsa AAAA\n|1|a|b ssh-ed25519 AAAA\n[h]:22,!x ssh-ed25519 AAAA")
	f.Fuzz(func(t *testing.T, text string) {
		clean, _ := sanitizeKnownHosts([]byte(text))
		assert.Equal(t, strings.Count(text, "\n"), strings.Count(string(clean), "\n"), "line numbers stay")
		path := filepath.Join(t.TempDir(), "known_hosts")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := readKnownHosts([]string{path})
		require.NoError(t, err)
	})
}

func FuzzConfig(f *testing.F) {
	f.Add("Host a\n  ProxyJump b\nMatch host c\n  User d\nHost *\n  Port 2222\n")
	f.Add("Host *\n ProxyJump *\n IdentityFile ~/%d\n")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(strings.ToLower(text), "include") {
			return // reads other files
		}
		path := filepath.Join(t.TempDir(), "config")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		r, err := newResolver(Options{Home: t.TempDir(), ConfigFile: path})
		if err != nil {
			return
		}
		_, _ = r.target(Target{Address: "a", JumpHosts: "b"})
	})
}

func FuzzJumpHosts(f *testing.F) {
	f.Add("a@b:22,[::1]:2222")
	f.Fuzz(func(_ *testing.T, list string) {
		r, _ := newResolver(Options{ConfigFile: ""})
		_, _ = r.target(Target{Address: "a", JumpHosts: list})
	})
}

func TestTheLineForSudoersIsOneThatSudoReads(t *testing.T) {
	for user, want := range map[string][2]string{
		"pai":         {"pai ALL=(ALL) ALL", "pai"},
		"first.last":  {"first.last ALL=(ALL) ALL", "first_last"},
		"a@b.c":       {"a@b.c ALL=(ALL) ALL", "a_b_c"},
		`DOMAIN\user`: {`DOMAIN\\user ALL=(ALL) ALL`, "DOMAIN_user"},
		"backup~":     {"backup~ ALL=(ALL) ALL", "backup_"},
		"o'neil":      {"o'neil ALL=(ALL) ALL", "o_neil"},
		"a b,c":       {`a\ b\,c ALL=(ALL) ALL`, "a_b_c"},
		"%x":          {`\%x ALL=(ALL) ALL`, "_x"},
		"a#b":         {`a\#b ALL=(ALL) ALL`, "a_b"},
	} {
		t.Run(user, func(t *testing.T) {
			line := sudoersLine(user, "ALL")
			command, file, _ := strings.Cut(line, " > /etc/sudoers.d/")
			assert.Equal(t, want[1], file)
			out, err := exec.CommandContext(t.Context(), "sh", "-c", command).Output()
			require.NoError(t, err)
			assert.Equal(t, want[0]+"\n", string(out))
		})
	}
}
