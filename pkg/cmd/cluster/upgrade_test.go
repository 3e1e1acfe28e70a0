package cluster

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

func TestFlagsOfAnUpgrade(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, ""},
		{[]string{"--at-once", "10%", "--job-policy", "wait", "--max-wait", "2h"}, ""},
		{[]string{"--at-once", "0"}, "--at-once 0: give a number above 0, or a part such as 10%"},
		{[]string{"--at-once", "101%"}, "--at-once 101%: give a number above 0, or a part such as 10%"},
		{[]string{"--at-once", "many"}, "--at-once many: give a number above 0, or a part such as 10%"},
		{[]string{"--job-policy", "kill"}, "--job-policy kill: use one of wait, requeue, stop"},
		{[]string{"--job-policy", "stop", "--max-wait", "1h"}, "--max-wait requires --job-policy wait"},
		{[]string{"--max-wait", "-1s"}, "--max-wait -1s: give a time above 0"},
		{[]string{"--max-failures", "0"}, "--max-failures 0: give 1 or more"},
		{[]string{"m1"}, "unknown command"},
	} {
		var got *UpgradeOptions
		s, _, _, _ := iostreams.Test()
		f := cmdutil.New("v0.0.0-test")
		f.IO, f.Getenv = s, func(string) string { return "" }
		cmd := NewCmdUpgrade(f, func(_ context.Context, o *UpgradeOptions) error { got = o; return nil })
		cmd.SetArgs(append(c.args, "-p", "x"))
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		err := cmd.Execute()
		if c.want != "" {
			require.ErrorContains(t, err, c.want, "%v", c.args)
			assert.Nil(t, got)
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, cluster.JobsWait, got.Upgrade.Jobs)
		assert.Equal(t, 1, got.Upgrade.MaxFailures)
		assert.Equal(t, 5*time.Minute, got.Upgrade.DrainTimeout)
	}
}

func TestAPartOfTheWorkersIsAtLeastOne(t *testing.T) {
	for text, want := range map[string]int{"3": 3, "10%": 2, "1%": 1, "100%": 25} {
		n, err := atOnce(text, 25)
		require.NoError(t, err)
		assert.Equal(t, want, n, text)
	}
	n, err := atOnce("50%", 0)
	require.NoError(t, err)
	assert.Equal(t, 1, n)
}
