package service

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/openpai/paictl/pkg/secret"
)

func TestPeopleAreToldHowTheyGetIn(t *testing.T) {
	until := time.Date(2026, 3, 1, 12, 30, 0, 0, time.UTC)
	own := &entrance{URL: "https://10.0.0.1", Fingerprint: "AB:CD"}
	assert.Equal(t, `
People sign in with: paictl login https://10.0.0.1
The authority of its certificate has the fingerprint
  AB:CD
There is no administrator yet. This link makes one, once, until 2026-03-01 12:30 UTC:
  https://10.0.0.1/first#CODE
`, own.welcome("CODE", until))
	sites := &entrance{URL: "https://gpu.example.org:8443"}
	assert.Equal(t, "\nPeople sign in with: paictl login https://gpu.example.org:8443\n", sites.welcome(secret.String(""), until))
	assert.Contains(t, (&entrance{}).welcome("CODE", until), "https://ADDRESS/first#CODE")
}

func TestWhichRunsAreAboutTheServer(t *testing.T) {
	for _, yes := range [][2][]string{{}, {{"rest-server"}}, {{"grafana", "pylon"}}, {nil, {"grafana"}}} {
		assert.True(t, asksForServer(yes[0], yes[1]), "%v", yes)
	}
	for _, no := range [][2][]string{{{"grafana"}}, {nil, {"webportal"}}} {
		assert.False(t, asksForServer(no[0], no[1]), "%v", no)
	}
}
