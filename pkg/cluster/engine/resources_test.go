package engine

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/shell"
)

func TestResourcesAreComparedWithWhatAHostAnswers(t *testing.T) {
	body, sha := []byte("a\nb\n"), strings.Repeat("0", 64)
	res := Resources{
		Modules:   []Module{{Name: "overlay"}},
		Sysctls:   map[string]string{"net.ipv4.ip_forward": "1"},
		Files:     []File{{Path: "/etc/x", Mode: 0o644, Body: body}, {Path: "/etc/s", Mode: 0o600, Body: body, Secret: true}},
		Blocks:    []Block{{Path: "/etc/hosts", Body: body}},
		Artifacts: []Artifact{{Path: "/bin/x", Mode: 0o755, Src: bundle.Artifact{Name: "x", Version: "v2", SHA256: sha}}},
		Units:     []Unit{{Name: "x.service", Reads: []string{"/bin/x"}}, {Name: "y.service", Reads: []string{"/etc/x"}, Later: true}},
	}
	whole := "module\toverlay\tloaded\nsysctl\tnet.ipv4.ip_forward\t1\nfile\t/etc/x\t644\t" + Hash(body) + "\nfile\t/etc/s\t600\t" + Hash(body) + "\n" +
		"block\t/etc/hosts\t" + encoded(body) + "\nart\t/bin/x\t755\t" + sha + "\nunit\tx.service\tenabled\tactive\tfresh\nunit\ty.service\tenabled\tactive\tfresh\n"
	for _, c := range []struct {
		name, old, new string
		want           []string
	}{
		{"all is as it shall be", "", "", nil},
		{"a module is not loaded", "overlay\tloaded", "overlay\tabsent", []string{"load module overlay"}},
		{"a setting differs", "ip_forward\t1", "ip_forward\t0", []string{"set sysctl net.ipv4.ip_forward 0 -> 1"}},
		{"a file is missing, and its unit runs", "file\t/etc/x\t644\t" + Hash(body), "file\t/etc/x\tabsent", []string{"create /etc/x 644", "restart y.service its files change"}},
		{"a file has another mode", "/etc/s\t600", "/etc/s\t644", []string{"update /etc/s mode 644 -> 600"}},
		{"a block has other lines", encoded(body), encoded([]byte("a\n")), []string{"update /etc/hosts the block of paictl"}},
		{"a program is another one", "755\t" + sha, "755\t" + strings.Repeat("1", 64), []string{"update /bin/x x v2", "restart x.service its files change"}},
		{"a unit is disabled", "x.service\tenabled", "x.service\tdisabled", []string{"enable x.service"}},
		{"a unit is stopped", "x.service\tenabled\tactive", "x.service\tenabled\tfailed", []string{"start x.service"}},
		{"a unit runs from old files", "x.service\tenabled\tactive\tfresh", "x.service\tenabled\tactive\tstale", []string{"restart x.service its files have changed"}},
		{"a unit that something else starts may be stopped", "y.service\tenabled\tactive", "y.service\tenabled\tinactive", nil},
		{"but shall start from the files that are there", "y.service\tenabled\tactive\tfresh", "y.service\tenabled\tinactive\tstale", []string{"enable y.service its files change before it starts"}},
		{"the host says half a line", "unit\tx.service\tenabled\tactive\tfresh", "unit\tx.service", []string{"enable x.service"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Contains(t, whole, c.old)
			a := parsed(t, []byte("@@ p\n"+strings.Replace(whole, c.old, c.new, 1)))["p"]
			var got []string
			cs := res.Diff(a)
			for _, x := range cs {
				got = append(got, strings.TrimSpace(x.Action+" "+x.Target+" "+x.Detail))
			}
			assert.Equal(t, c.want, got)
			for _, x := range cs {
				assert.Contains(t, res.Script(cs), shell.Quote(strings.TrimPrefix(strings.TrimPrefix(x.Target, "module "), "sysctl ")), "each change is in the script")
			}
			assert.Equal(t, len(cs), strings.Count("\n"+res.Script(cs), "\np_"), "and nothing else")
		})
	}
	assert.Empty(t, res.Script(nil))
	secretDiff := res.Diff(parsed(t, []byte("@@ p\n"+strings.Replace(whole, "600\t"+Hash(body), "600\t"+sha+"\t"+encoded([]byte("old")), 1)))["p"])
	require.Len(t, secretDiff, 1)
	assert.Empty(t, secretDiff[0].Diff, "a secret file is never shown")
}

func parsed(t *testing.T, out []byte) map[string]answer.Answer {
	t.Helper()
	sections, err := answer.Sections(out)
	require.NoError(t, err)
	return sections
}

func encoded(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
