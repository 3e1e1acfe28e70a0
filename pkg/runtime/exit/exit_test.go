package exit_test

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/runtime/exit"
)

func TestTheCodeOfAnErrorIsTheOutermost(t *testing.T) {
	plain := errors.New("plain")
	for name, c := range map[string]struct {
		err  error
		code int
		own  bool
	}{
		"no error":                     {nil, 0, true},
		"one that says nothing of it":  {plain, exit.Setup, true},
		"one with a code":              {exit.With(exit.GangTimeout, plain), 251, true},
		"one within another's words":   {fmt.Errorf("wait: %w", exit.With(exit.PortConflict, plain)), 253, true},
		"one within one":               {exit.With(exit.Setup, exit.With(exit.PortConflict, plain)), 247, true},
		"a program's":                  {exit.OfProgram(3, plain), 3, false},
		"a program's in other words":   {fmt.Errorf("plugin 1: %w", exit.OfProgram(exit.Signal(9), plain)), 137, false},
		"one of several":               {errors.Join(plain, exit.With(exit.BarrierPermanent, plain)), 252, true},
		"the runtime's of a program's": {exit.With(exit.SSHBarrierTimeout, exit.OfProgram(1, plain)), 249, true},
	} {
		assert.Equal(t, c.code, exit.Code(c.err), name)
		if c.err != nil {
			assert.Equal(t, c.own, exit.IsRuntimeCode(c.err), name)
		}
	}
}

func TestACodeKeepsTheCauseAndItsWords(t *testing.T) {
	require.NoError(t, exit.With(exit.Setup, nil))
	err := exit.With(exit.Setup, fmt.Errorf("read it: %w", fs.ErrNotExist))
	require.ErrorIs(t, err, fs.ErrNotExist)
	assert.Equal(t, "read it: file does not exist", err.Error())
}
