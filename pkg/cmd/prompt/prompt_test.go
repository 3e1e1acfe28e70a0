package prompt_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cmd/prompt"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

func TestAnUnknownHostKeyIsConfirmedByAWord(t *testing.T) {
	io, _, _, errOut := iostreams.Test()
	io.In = strings.NewReader("maybe\nyes\nno\nall\n")
	p := &prompt.Person{IO: io}
	ok, err := p.ConfirmKey("a", "SHA256:abc")
	require.NoError(t, err)
	assert.True(t, ok)
	assert.Equal(t, 2, strings.Count(errOut.String(), "Is this the right machine?"), "maybe is no answer")
	ok, err = p.ConfirmKey("b", "SHA256:def")
	require.NoError(t, err)
	assert.False(t, ok)
	for _, h := range []string{"c", "d"} { // d needs no question
		ok, err = p.ConfirmKey(h, "SHA256:ghi")
		require.NoError(t, err)
		assert.True(t, ok)
	}
	_, err = (&prompt.Person{IO: io}).ConfirmKey("e", "SHA256:jkl")
	require.ErrorContains(t, err, "the question was not answered", "no one can answer")
	assert.Contains(t, hint.Of(err), "nothing was changed")
}
