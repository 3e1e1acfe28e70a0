package cluster

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"mvdan.cc/sh/v3/syntax"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/paths"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/cluster/shell"
	"github.com/openpai/paictl/pkg/ssh"
	"github.com/openpai/paictl/test/tier"
)

// TestEveryScriptThatIsSentIsPOSIXShell collects all scripts that hosts get while clusters of several shapes are created, changed and repaired. It
// parses the scripts in two ways.
func TestEveryScriptThatIsSentIsPOSIXShell(t *testing.T) {
	t.Parallel()
	bodies := map[string]bool{}
	collect := func(l *lab) {
		for _, h := range l.hosts {
			for _, e := range h.server.Execs() {
				if e.Body != "" {
					bodies[e.Body] = true
				}
			}
		}
	}
	three := newLab(t, 3, 1)
	three.mustUp()
	collect(three)
	odd := newLab(t, 1, 1)
	odd.conf.Layout.MachineList[1].Labels = map[string]string{"it's": `"quoted" $x`}
	odd.up(t.Context(), func(o *labOptions, _ *ssh.Options) { o.Fix = true })
	collect(odd)
	changed := newLab(t, 1, 1)
	changeMuch(changed)
	changed.mustUp()
	changed.host("w1").remove(paths.Member)
	changed.mustUp()
	collect(changed)
	for _, p := range phases.All(three.spec().Fresh()) { // even if no host needed it
		for _, n := range three.spec().Nodes {
			bodies[engine.PreludeScript+p.Verify(n)] = true
		}
	}
	for _, s := range []string{engine.PreludeScript, engine.DetectScript, engine.ApplyScript, phases.DriverDetectScript, phases.DriverScript, downScript, phases.KubeadmScript, engine.RepairScript, string(phases.FlannelCNI), string(phases.PodMetadata), string(phases.RenewProgram()), string(phases.KubeletResolvConf), phases.CertificatesScript, engine.EtcdScript, endpointScript, secretsScript, authorityScript, phases.RestoreScript} {
		bodies[s] = true
	}
	require.Greater(t, len(bodies), 50)
	parser := syntax.NewParser(syntax.Variant(syntax.LangPOSIX))
	for body := range bodies {
		_, err := parser.Parse(strings.NewReader(body), "script")
		require.NoError(t, err, "%s", body)
		sh := exec.CommandContext(t.Context(), "/bin/sh", "-n")
		sh.Stdin = strings.NewReader(body)
		out, err := sh.CombinedOutput()
		require.NoError(t, err, "%s\n%s", out, body)
	}
}

// FuzzDataSurvivesTheShell passes words and documents through /bin/sh and expects them back unchanged.
func FuzzDataSurvivesTheShell(f *testing.F) {
	for _, s := range []string{"", "plain", "it's", `a\nb`, "$(reboot) `x` ${y}", "line\nPAICTL_DATA\nline\n", "\t\x01\xff\xfe", strings.Repeat("x'", 200)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		run := func(body string) string {
			sh := exec.CommandContext(t.Context(), "/bin/sh", "-c", body)
			out, err := sh.Output()
			require.NoError(t, err, "%q", body)
			return string(out)
		}
		assert.Equal(t, string(data), run(engine.Heredoc("base64 -d", data)))
		word := strings.ReplaceAll(string(data), "\x00", "")
		assert.Equal(t, word, run("printf %s "+shell.Quote(word)))
		assert.Equal(t, word+"|b", run("printf '%s|' " + shell.QuoteAll([]string{word, "b"}) + " | sed 's/|$//'")[:len(word)+2])
	})
}

func TestAnswersAreReadWhateverAHostSays(t *testing.T) {
	for _, c := range []struct {
		name, out string
		want      string // of fmt
	}{
		{"nothing", "", "map[]"},
		{"a banner before the first section", "Welcome!\n@@ a\nx\t1\n", "map[a:x=1]"},
		{"an empty section and one that broke off", "@@ a\n@@ b\nx\n@! 2\n", "map[a: b:x !2]"},
		{"a section twice: the last one counts", "@@ a\nx\t1\n@@ a\nx\t2\n", "map[a:x=2]"},
		{"no end of line", "@@ a\nx\t1", "map[a:x=1]"},
		{"bytes that are no text", "@@ a\n\xff\x00\t\x01\n", "map[a:\xff\x00=\x01]"},
		{"tabs without end", "@@ a\n\t\t\t\n", "map[a:===]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := map[string]string{}
			for name, a := range sectionsOf([]byte(c.out)) {
				for _, r := range a.Rows {
					got[name] += strings.Join(r, "=")
				}
				if a.Failed != "" {
					got[name] += " !" + a.Failed
				} else if len(a.Rows) == 0 {
					got[name] = ""
				}
			}
			assert.Equal(t, c.want, fmt.Sprint(got))
		})
	}
}

func FuzzParseFactsTakesAnything(f *testing.F) {
	f.Add([]byte("@@ base\nsysctl\tnet.ipv4.ip_forward\t1\n@! 3\n"))
	f.Add([]byte("@@ init\nnode\t!!!\napi\tup\n@@ join\nmember\tyes\n"))
	f.Add([]byte("@@ init\nnode\tm1\t\t\"True\"\t\"v1\"\ta=b:c,\t\"x\"\tl=v,\t\"\"\napi\tup\n@@ join\nmember\tyes\n"))
	l := testSpec(f, 1, 1)
	f.Fuzz(func(t *testing.T, out []byte) {
		sections := sectionsOf(out)
		w := &engine.World{Want: l.Fresh(), Facts: map[string]*engine.Facts{"m1": {Sections: sections}, "w1": {Sections: sections}}}
		w.Elect()
		w.AgainstFounding()
		_, _ = w.Apart()
		_, _ = w.UnlistedMasters()
		for _, p := range phases.All(w.Want) {
			for _, n := range l.Nodes {
				if p.Applies(n) {
					_, _ = p.Diff(n, w) // an error is a valid result, a panic is not
				}
			}
		}
		for _, a := range sections {
			assert.False(t, bytes.Contains(a.Raw, []byte("\n@@ ")), "a section holds no other")
		}
	})
}

// TestASettingOfTheKernelIsReadWhole checks that the whole value is read. The kernel returns the value in one read, so a shell that reads byte by
// byte would get only one digit.
func TestASettingOfTheKernelIsReadWhole(t *testing.T) {
	tier.More(t, "the kernel's settings")
	for key, file := range map[string]string{"vm.max_map_count": "/proc/sys/vm/max_map_count", "net.ipv4.tcp_rmem": "/proc/sys/net/ipv4/tcp_rmem"} {
		want, err := os.ReadFile(file)
		if os.IsNotExist(err) {
			t.Skipf("this machine doesn't show %s", file)
		}
		require.NoError(t, err)
		sh := exec.CommandContext(t.Context(), "/bin/sh")
		sh.Stdin = strings.NewReader("PAICTL_ROOT=\n" + engine.PreludeScript + "sysctl_file " + key + "\nsysctl_in \"$f\"\nprintf %s \"$v\"\n")
		got, err := sh.Output()
		require.NoError(t, err)
		assert.Equal(t, strings.ReplaceAll(strings.TrimSpace(string(want)), "\t", " "), string(got))
	}
}

// TestAFileThatCantBeReadDiffers checks that an unreadable file counts as different, because one bad block must not prevent the whole run.
func TestAFileThatCantBeReadDiffers(t *testing.T) {
	good := filepath.Join(t.TempDir(), "good")
	require.NoError(t, os.WriteFile(good, []byte("x\n"), 0o600))
	const sum = "73cb3858a687a8494ca3323053016282f3dad39d42cf62ca4e79dda2aac7d9ac"
	sh := exec.CommandContext(t.Context(), "/bin/sh")
	sh.Stdin = strings.NewReader("PAICTL_ROOT=\n" + engine.PreludeScript + engine.DetectScript +
		"printf '%s\\t%s\\tp\\n' /proc/self/mem aaaa " + good + " " + sum + " | d_files\n")
	got, err := sh.Output()
	require.NoError(t, err, "%s", got)
	require.Len(t, strings.Split(strings.TrimSpace(string(got)), "\n"), 2)
	assert.Contains(t, string(got), "\tunreadable\t")
	assert.Contains(t, string(got), "file\t"+good+"\t600\t"+sum+"\t")
}

// TestAUnitsProgramIsNotReadAgain checks that the program's stamp is used. The program is a hundred times as large as the unit's other files.
func TestAUnitsProgramIsNotReadAgain(t *testing.T) {
	root := t.TempDir()
	program, settings := filepath.Join(root, "program"), filepath.Join(root, "settings")
	require.NoError(t, os.WriteFile(program, []byte("program\n"), 0o755))
	require.NoError(t, os.WriteFile(settings, []byte("settings\n"), 0o600))
	stamps := filepath.Join(root, "var/lib/paictl/stamps")
	require.NoError(t, os.MkdirAll(filepath.Dir(stamps), 0o700))
	hash := func(script string) string {
		sh := exec.CommandContext(t.Context(), "/bin/sh")
		sh.Stdin = strings.NewReader("PAICTL_ROOT=" + root + "\n" + engine.PreludeScript + script + "unit_hash /settings /program /absent\n")
		got, err := sh.CombinedOutput()
		require.NoError(t, err, "%s", got)
		require.Len(t, got, 65)
		return string(got)
	}
	const stamp = `printf '/program\t%s\t%s\n' "$sum" "$(stat -c '%s %.9Z %i' "$R/program")" >"$S/stamps"` + "\n"
	read := hash("")
	assert.Equal(t, read, hash(`sum=$(sha256sum <"$R/program"); sum=${sum%% *}`+"\n"+stamp), "with a stamp")
	assert.NotEqual(t, read, hash("sum="+strings.Repeat("0", 64)+"\n"+stamp), "the stamp counts")
	require.NoError(t, os.WriteFile(program, []byte("another\n"), 0o755))
	assert.NotEqual(t, read, hash(""), "a stamp of another file doesn't")
	require.NoError(t, os.WriteFile(program, []byte("program\n"), 0o755))
	assert.Equal(t, read, hash(""))
	require.NoError(t, os.WriteFile(settings, []byte("others\n"), 0o600))
	assert.NotEqual(t, read, hash(""))
}
