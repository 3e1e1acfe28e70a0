package alerts

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/node/agent/gpu"
)

// Each error of a GPU causes one alert. GpuXidFatal covers all errors that make a GPU unusable, and GpuXidOther covers the other errors.
// GpuUnhealthy doesn't fire while GpuXidFatal fires.
func TestEachXIDHasOneAlert(t *testing.T) {
	exprs := map[string]string{}
	for _, r := range rules(t) {
		exprs[r.Alert] = r.Expr
	}
	numbers := func(alert, operator string) (out []string) {
		for _, m := range regexp.MustCompile(operator+` (\d+)`).FindAllStringSubmatch(exprs[alert], -1) {
			out = append(out, m[1])
		}
		return out
	}
	fatal := numbers("GpuXidFatal", "==")
	require.NotEmpty(t, fatal)
	assert.Equal(t, fatal, numbers("GpuXidOther", "!="))
	for code := range 1000 { // NVIDIA's numbers are lower
		if x := gpu.FindXID(code); x.BreaksGPU() {
			assert.Contains(t, fatal, strconv.Itoa(code), x.String())
		}
	}
}
