package templates

import (
	"io/fs"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"text/template"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/openpai/paictl/pkg/node/agent/gpu"
)

// The alert GpuXidFatal has the label remedy, by which policies select alerts. The label must agree with the agent's list of XIDs.
func TestAlertsAboutXIDsNameTheirRemedy(t *testing.T) {
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Labels      map[string]string
			}
		}
	}
	data, err := fs.ReadFile(Charts(), "charts/prometheus/files/rules/gpus.yaml")
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(data, &rules))
	seen := 0
	for _, r := range rules.Groups[0].Rules {
		if r.Alert != "GpuXidFatal" {
			continue
		}
		remedy, err := template.New("").Parse("{{ $value := . }}" + r.Labels["remedy"])
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`== ([0-9]+)`).FindAllStringSubmatch(r.Expr, -1) {
			n, err := strconv.Atoi(m[1])
			require.NoError(t, err)
			var out strings.Builder
			require.NoError(t, remedy.Execute(&out, float64(n)))
			want := "reset"
			if gpu.FindXID(n).Action == gpu.Restart {
				want = "restart"
			}
			require.Equal(t, want, out.String(), "XID %d", n)
			seen++
		}
	}
	require.Positive(t, seen)
}
