package cluster

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/ssh"
)

func TestAFileThatWinsAtTheNextBootIsNamed(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, 1)
	w1 := l.host("w1")
	// None of these files has an effect. These files are read before paictl's file, are hidden or commented out, or contain the same value.
	w1.write("/etc/sysctl.d/99-sysctl.conf", "net.ipv4.ip_forward = 0\n")
	w1.write("/usr/lib/sysctl.d/99-zzz-vendor.conf", "net.ipv4.ip_forward = 0\n")
	w1.write("/etc/sysctl.d/99-zzz-vendor.conf", "# net.ipv4.ip_forward = 0\n;net.ipv4.ip_forward=0\n")
	w1.write("/run/sysctl.d/zz-same.conf", "-net/bridge/bridge-nf-call-iptables=1\n")
	w1.write("/etc/sysctl.d/zz-last.conf", "net.ipv4.ip_forward = 1\n\n  net/ipv4/ip_forward=0\n")
	o := l.mustUp()
	var warnings []string
	for _, e := range o.events {
		if e.Kind == engine.EventWarning {
			warnings = append(warnings, e.Host+": "+e.Message+" -> "+e.Hint)
		}
	}
	assert.Equal(t, []string{"w1: /etc/sysctl.d/zz-last.conf sets net.ipv4.ip_forward to 0 at the next boot; the cluster needs 1 -> remove the line from /etc/sysctl.d/zz-last.conf: it is read after " + phases.SysctlFile}, warnings)
}

func TestTheSettingsOfAnEarlierReleaseMoveToTheFileThatWins(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, 0)
	l.made()
	m1 := l.host("m1")
	text := m1.read(phases.SysctlFile)
	require.Contains(t, text, "net.ipv4.ip_forward = 1\n")
	// Restore the state that an earlier release has left.
	m1.remove(phases.SysctlFile)
	m1.write(phases.OldSysctlFile, text)
	m1.write(engine.StateDir+"/owned", strings.ReplaceAll(m1.read(engine.StateDir+"/owned"), phases.SysctlFile, phases.OldSysctlFile))
	assert.Equal(t, "m1 base create "+phases.SysctlFile+" 644\nm1 base delete "+phases.OldSysctlFile+" paictl no longer uses it\n", lines(l.mustUp().changes))
	assert.Equal(t, text, m1.read(phases.SysctlFile))
	assert.NoFileExists(t, m1.root+phases.OldSysctlFile)
	assert.NotContains(t, m1.read(engine.StateDir+"/owned"), phases.OldSysctlFile)
	assert.Contains(t, m1.read(engine.StateDir+"/owned"), "file\t"+phases.SysctlFile+"\tcreated")
	assert.Empty(t, l.mustUp().changes)
}

func TestACloudInitThatWritesTheNamesOfMachinesAwayIsWarnedOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"none", nil, ""},
		{"on", map[string]string{"cloud.cfg": "manage_etc_hosts: true\n"}, "true in /etc/cloud/cloud.cfg"},
		{"a template, in quotes", map[string]string{"cloud.cfg.d/50-a.cfg": "#cloud-config\nmanage_etc_hosts: \"template\"\n"}, "template in /etc/cloud/cloud.cfg.d/50-a.cfg"},
		{"only a line", map[string]string{"cloud.cfg": "manage_etc_hosts: localhost\n"}, ""},
		{"off again", map[string]string{"cloud.cfg": "manage_etc_hosts: true\n", "cloud.cfg.d/99-zz-etc-hosts.cfg": "manage_etc_hosts: false\n"}, ""},
		{"no cloud-init", map[string]string{"cloud.cfg": "manage_etc_hosts: true\n", "cloud-init.disabled": ""}, ""},
		{"commented out", map[string]string{"cloud.cfg": "# manage_etc_hosts: true\n"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, 1, 0)
			for name, text := range c.files {
				l.host("m1").write("/etc/cloud/"+name, text)
			}
			o := l.up(t.Context(), func(o *labOptions, _ *ssh.Options) { o.DryRun = true })
			require.NoError(t, o.err)
			var found []engine.Event
			for _, e := range o.events {
				if e.Kind == engine.EventWarning {
					found = append(found, e)
				}
			}
			if c.want == "" {
				assert.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			assert.Contains(t, found[0].Message, "(manage_etc_hosts: "+c.want+")")
			assert.Contains(t, found[0].Hint, "echo 'manage_etc_hosts: false' >")
		})
	}
}
