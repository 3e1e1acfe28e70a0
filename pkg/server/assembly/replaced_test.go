package assembly_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheNextPersonOfABrowserIsNotTheLastOneAtAProxiedPage(t *testing.T) {
	h, _, _ := twoServices(t)
	h.person(t, "nora") // may see no page
	b := newVisitor(t, h.Server)
	b.signsIn(h.Server, "wilma")
	steps := b.goes(h.ProxyURL+"/ours/x", "")
	require.Equal(t, 200, steps[len(steps)-1].status)

	b.signsIn(h.Server, "nora")
	require.Contains(t, b.opens(h.URL+"/api/v3/whoami", "Sec-Fetch-Site", "same-origin").body, `"nora"`)
	steps = b.goes(h.ProxyURL+"/ours/x", "")
	assert.Equal(t, 403, steps[len(steps)-1].status, "the browser has still the right of wilma's session: %s", steps[len(steps)-1].body)
}
