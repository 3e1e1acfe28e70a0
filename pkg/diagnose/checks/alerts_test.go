package checks

import (
	"fmt"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/templates"
)

// Prometheus' alerts check the same facts, but can't use Go's constants.
func TestAlertsHaveTheLimitsOfTheChecks(t *testing.T) {
	expressions := map[string]string{}
	for _, file := range []string{"certificates", "disks"} {
		text, err := fs.ReadFile(templates.Charts(), "charts/prometheus/files/rules/"+file+".yaml")
		require.NoError(t, err)
		var rules struct {
			Groups []struct {
				Rules []struct{ Alert, Expr string }
			}
		}
		require.NoError(t, yaml.Unmarshal(text, &rules))
		for _, r := range rules.Groups[0].Rules {
			expressions[r.Alert] = r.Expr
		}
	}
	percent := func(n int) string { return fmt.Sprint(float64(n) / 100) }
	low, full := []string{"< " + percent(RoomWarning), ">= " + percent(RoomProblem)}, []string{"< " + percent(RoomProblem)}
	for alert, limits := range map[string][]string{
		"CertificateExpires":     {fmt.Sprintf("< %d * 86400", CertificateWarning), fmt.Sprintf(">= %d * 86400", CertificateProblem)},
		"FilesystemLow":          low,
		"VolumeLow":              low,
		"FilesystemFull":         full,
		"VolumeFull":             full,
		"FilesystemInodesLow":    low[:1],
		"VolumeInodesLow":        low[:1],
		"CertificateExpiresSoon": {fmt.Sprintf("< %d * 86400", CertificateProblem)},
	} {
		for _, limit := range limits {
			assert.Contains(t, expressions[alert], limit, alert)
		}
	}
}
