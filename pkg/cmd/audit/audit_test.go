package audit_test

import (
	"context"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cmd"
	"github.com/openpai/paictl/pkg/cmd/cmdtest"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server/servertest"
)

func TestMain(m *testing.M) {
	cmdtest.Main(kubetest.Wrap(m), func() { os.Exit(cmd.Main(context.Background(), cmdutil.New("v0.0.0-test"), os.Args[1:])) })
}

// The script runs against a server where ann has submitted and stopped a job, and a request of mia was denied.
func TestScriptsOnAServer(t *testing.T) {
	c := kubetest.Start(t)
	servertest.Prepare(t, c)
	s := servertest.Start(t, c, servertest.Options{})
	s.Group("speech", func(g *v1.GroupSpec) { g.VirtualClusters = []v1.VCGrant{{Name: "speech"}} })
	env := map[string]string{"PAICTL_SERVER": s.URL, "PAICTL_CA": filepath.Join(t.TempDir(), "ca.pem")}
	require.NoError(t, os.WriteFile(env["PAICTL_CA"], pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.TLS.Certificate().Raw}), 0o600))
	for name, group := range map[string]string{"ann": "speech", "mia": v1.GroupDefault, "root": v1.GroupAdministrators} {
		s.Person(name, group)
		env[name] = s.SignIn(name)
	}
	require.Equal(t, 202, s.Submit(env["ann"], "train", "speech").Status)
	require.Equal(t, 403, s.Submit(env["mia"], "train", "speech").Status)
	require.Equal(t, 404, s.Do("POST", "/api/v3/jobs/ann/train/stop", env["mia"], "").Status)
	require.Equal(t, 200, s.Do("POST", "/api/v3/jobs/ann/train/stop", env["ann"], "").Status)
	s.Eventually("the records are kept", func() bool {
		page := struct{ Items []any }{}
		s.Do("GET", "/api/v3/audit", env["root"], "").Into(&page)
		return len(page.Items) == 7
	})
	cmdtest.RunIn(t, "testdata/server", env)
	require.NotContains(t, s.Printed.String(), fmt.Sprint(env["ann"]))
}
