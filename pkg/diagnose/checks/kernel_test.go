package checks

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSettingsThatAreLostAtTheNextBootAreProblems(t *testing.T) {
	want := map[string]string{"net.ipv4.ip_forward": "1", "vm.max_map_count": "262144"}
	found := Overridden([]Setting{{"net.ipv4.ip_forward", "0", "/etc/sysctl.d/zz.conf"}, {"vm.max_map_count", "262144", "/etc/sysctl.d/zz.conf"}}, want, "/etc/sysctl.d/ours.conf")
	assert.Equal(t, []string{"error sysctl: /etc/sysctl.d/zz.conf sets net.ipv4.ip_forward to 0 at the next boot; the cluster needs 1"}, texts(found))
	assert.Contains(t, found[0].Remedy, "it is read after /etc/sysctl.d/ours.conf")
	assert.True(t, found[0].Advice, "a run can continue")
}

func TestKubeletsFollowTheirAPIServer(t *testing.T) {
	for kubelet, want := range map[string]string{
		"v1.36.3": "", "v1.33.0": "", "": "", "v1.36.9": "",
		"v1.32.9": "its kubelet v1.32.9 is too old for the API server v1.36.3",
		"v1.37.0": "its kubelet v1.37.0 is newer than the API server v1.36.3",
		"v0.36.0": "its kubelet v0.36.0 is too old for the API server v1.36.3",
	} {
		f := Kubelet("w1", kubelet, "v1.36.3")
		if want == "" {
			assert.Nil(t, f, kubelet)
			continue
		}
		assert.Equal(t, want, f.Message)
		assert.Equal(t, "w1", f.Host)
	}
}
