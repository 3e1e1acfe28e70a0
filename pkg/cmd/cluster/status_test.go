package cluster

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/diagnose/checks"
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

func TestStatusWarnsOfCertificatesThatExpire(t *testing.T) {
	io, _, out, _ := iostreams.Test()
	st := &cluster.Status{}
	now := time.Now()
	for _, host := range []string{"m1", "m2", "m3"} {
		for name, left := range map[string]time.Duration{"apiserver": 100 * time.Hour, "etcd/server": 1000 * time.Hour} {
			c := checks.NewCertificate(name, now.Add(left), now)
			c.Host = host
			st.Certificates = append(st.Certificates, *c)
		}
	}
	opts := &StatusOptions{Factory: &cmdutil.Factory{IO: io}}
	cmdutil.AddOutputFlag(&cobra.Command{}, &opts.Output)
	require.NoError(t, writeStatus(opts, st))
	assert.Contains(t, out.String(), "\nwarning: on m1,m2,m3, the certificate apiserver expires in 4 days\n  -> on the machine: systemctl start paictl-certificates.service")
	assert.Equal(t, 1, strings.Count(out.String(), "warning: "))
}
