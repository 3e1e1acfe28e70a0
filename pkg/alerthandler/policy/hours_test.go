package policy_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/alerthandler/policy"
)

func TestHoursOfAPolicy(t *testing.T) {
	read := func(hours string) (*policy.Config, error) {
		return policy.Read(fmt.Appendf(nil, `{"limits":{},"drainTimeout":"30m","keep":"24h","policies":[{"name":"p","alerts":{"alertname":"A"},"hours":%s,"steps":[{"do":"stop-job"}]}]}`, hours))
	}
	c, err := read(`{"zone":"Asia/Shanghai","days":["mon","sun"],"from":"09:30","to":"24:00"}`)
	require.NoError(t, err)
	friday := time.Date(2026, 12, 4, 12, 0, 0, 0, time.UTC)
	require.Equal(t, "2026-12-06T01:30:00Z", c.Policies[0].Opens().Next(friday).UTC().Format(time.RFC3339))
	c, err = read("null")
	require.NoError(t, err)
	require.Nil(t, c.Policies[0].Opens())
	for hours, want := range map[string]string{
		`{}`: `policies[0].hours.zone: "" isn't a time zone`,
		`{"zone":"Local","days":["mon"],"from":"09:00","to":"18:00"}`:       `zone: "Local" isn't a time zone`,
		`{"zone":"Mars/Base","days":["mon"],"from":"09:00","to":"18:00"}`:   `zone: "Mars/Base" isn't a time zone`,
		`{"zone":"UTC","days":[],"from":"09:00","to":"18:00"}`:              "days: without a day",
		`{"zone":"UTC","days":["Monday"],"from":"09:00","to":"18:00"}`:      `days[0]: "Monday" isn't a day`,
		`{"zone":"UTC","days":["mon"],"from":"9:00","to":"18:00"}`:          `from: "9:00" isn't a time of the day`,
		`{"zone":"UTC","days":["mon"],"from":"09:00","to":"25:00"}`:         `to: "25:00" isn't a time of the day`,
		`{"zone":"UTC","days":["mon"],"from":"18:00","to":"09:00"}`:         "to: 09:00 isn't after 18:00",
		`{"zone":"UTC","days":["mon"],"from":"09:00","to":"18:00","x":"y"}`: "unknown field",
	} {
		_, err := read(hours)
		require.ErrorContains(t, err, want, hours)
	}
}
