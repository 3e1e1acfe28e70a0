package job

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/openpai/paictl/pkg/job/api"
)

func TestTheShareOfAPeriodIsOfWhatHasPassedOfIt(t *testing.T) {
	day := time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)
	since, until, now := day.Add(6*time.Hour), day.AddDate(0, 0, 10), day.AddDate(0, 0, 1).Add(2*time.Hour)
	next := day.AddDate(0, 0, 1)
	for _, c := range []struct {
		period *time.Time
		by     string
		want   time.Duration
	}{
		{nil, api.ByVC, 20 * time.Hour}, {&day, api.ByDay, 18 * time.Hour}, {&next, api.ByDay, 2 * time.Hour},
		{&next, api.ByMonth, 2 * time.Hour}, {&next, api.ByHour, time.Hour},
	} {
		assert.Equal(t, c.want, span(c.period, []string{c.by}, since, until, now), c.by)
	}
}
