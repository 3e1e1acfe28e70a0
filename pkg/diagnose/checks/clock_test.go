package checks

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAClockIsSynchronizedBySomething(t *testing.T) {
	for name, tc := range map[string]struct {
		sync TimeSync
		want string
		fix  string
	}{
		"a service that runs":                    {TimeSync{Installed: []string{"chrony"}, Running: []string{"chrony"}, Synced: "yes"}, "", ""},
		"one that can't be asked":                {TimeSync{Running: []string{"ntpsec"}}, "", ""},
		"one that only the facts know":           {TimeSync{Source: "ntpd"}, "", ""},
		"something unknown":                      {TimeSync{Synced: "yes"}, "", ""},
		"PTP":                                    {TimeSync{Installed: []string{"chrony"}, Running: []string{"phc2sys"}}, "", ""},
		"one without a server":                   {TimeSync{Running: []string{"systemd-timesyncd"}, Synced: "no"}, "warning time-source: systemd-timesyncd runs, but has found no time server", ""},
		"one that was just stopped, or another":  {TimeSync{Installed: []string{"chrony"}, Synced: "yes"}, "error time-source: no service synchronizes its clock: chrony is installed, but doesn't run", ""},
		"one that was stopped long ago":          {TimeSync{Installed: []string{"chrony"}, Synced: "no"}, "error time-source: no service synchronizes its clock: chrony is installed, but doesn't run", "systemctl enable --now chrony.service"},
		"none, on a system with packages of apt": {TimeSync{Synced: "no", Apt: true}, "warning time-source: no service synchronizes its clock", "p_packages systemd-timesyncd"},
		"none, on a system with other packages":  {TimeSync{}, "warning time-source: no service synchronizes its clock", ""},
	} {
		f := tc.sync.Check()
		if tc.want == "" {
			assert.Nil(t, f, name)
			continue
		}
		assert.Equal(t, []string{tc.want}, texts([]Finding{*f}), name)
		assert.Equal(t, tc.fix, f.Fix, name)
		assert.True(t, f.Advice, "a run can continue")
	}
}
