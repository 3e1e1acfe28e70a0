package cluster

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

func TestStatusNamesTheHolderOfAnAddressThatAnswers(t *testing.T) {
	for want, vip := range map[string]*cluster.VIPStatus{
		"virtual address 10.0.0.50 of the API: no machine has it\n":                                 {Address: "10.0.0.50"},
		"virtual address 10.0.0.50 of the API: at m2\n":                                             {Address: "10.0.0.50", Holder: "m2", Answers: true},
		"virtual address 10.0.0.50 of the API: should be at m2, but the API doesn't answer there\n": {Address: "10.0.0.50", Holder: "m2"},
	} {
		io, _, out, _ := iostreams.Test()
		cmd := NewCmdStatus(&cmdutil.Factory{IO: io, Getenv: func(string) string { return "" }}, func(_ context.Context, opts *StatusOptions) error {
			return writeStatus(opts, &cluster.Status{VIP: vip})
		})
		cmd.SetArgs([]string{})
		require.NoError(t, cmd.ExecuteContext(t.Context()))
		assert.Contains(t, out.String(), want)
	}
}
