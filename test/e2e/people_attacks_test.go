package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/client/login"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/server/attacks"
)

// mark is a text that only ada's job contains.
const mark = "only-its-owner-reads-this-7391"

// siege holds the data for attacks on the server of a cluster. ada has a job that ben may not see.
type siege struct {
	server string            // https://HOST
	homes  map[string]string // the homes of ada and ben, who are signed in at the cluster "lab"
	// as runs paictl as one of the two people. asOperator runs paictl with the cluster's kubeconfig.
	as         func(who string, args ...string) result
	asOperator func(args ...string) string
}

// getsNothing makes all attacks over the network, from a machine outside the cluster.
func (th *siege) getsNothing(t *testing.T) {
	for who, name := range map[string]string{"ada": "vault", "ben": "own"} {
		file := jobFile(t, strings.Replace(read(t, example(t, "hello")), "name: hello", "name: "+name, 1)+"parameters: {mark: "+map[string]string{"ada": mark, "ben": "none"}[who]+"}\n")
		r := th.as(who, "job", "submit", file)
		require.Equal(t, 0, r.code, r)
	}
	w := th.world(t)
	all := attacks.All(w)
	for i := range all {
		assert.NoError(t, attacks.Try(t.Context(), w, &all[i]), all[i].Name)
	}
	frames := attacks.Frames(w)
	for i := range frames {
		assert.NoError(t, attacks.TryFrames(t.Context(), w, &frames[i]), frames[i].Name)
	}
	t.Logf("%d attempts on %s", len(all)+len(frames), th.server)

	r := th.as("ada", "job", "get", "vault", "--config")
	assert.Contains(t, r.stdout, mark, "it is as it was: %s", r)
	r = th.as("ada", "job", "list", "-A")
	assert.NotContains(t, r.stdout, attacks.Taken)
	r = th.as("ben", "whoami", "-o", "json")
	assert.NotContains(t, r.stdout, `"administrator": true`)
	assert.NotContains(t, th.asOperator("user", "list"), "made-by-thief")
	for who, name := range map[string]string{"ada": "vault", "ben": "own"} {
		th.as(who, "job", "delete", name, "--yes")
	}
}

// world returns the World for the attacks, with the tokens of the people and with invalid tokens.
func (th *siege) world(t *testing.T) *attacks.World {
	t.Helper()
	signedIn := map[string]*login.Cluster{}
	for who, home := range th.homes {
		f, err := login.Store{Path: home + "/paictl/clusters.yaml"}.Read()
		require.NoError(t, err)
		require.NotNil(t, f.Clusters["lab"], who)
		signedIn[who] = f.Clusters["lab"]
	}
	ca := x509.NewCertPool()
	require.True(t, ca.AppendCertsFromPEM([]byte(signedIn["ada"].CA)))
	u, err := url.Parse(th.server)
	require.NoError(t, err)
	address := u.Host
	if u.Port() == "" {
		address = net.JoinHostPort(u.Hostname(), "443")
	}
	made := func(who string) (token, id string) {
		t.Helper()
		var out struct{ ID, Token string }
		require.NoError(t, json.Unmarshal([]byte(th.asOperator("token", "create", "--user", who, "-o", "json")), &out))
		require.NotEmpty(t, out.Token)
		return out.Token, out.ID
	}
	revoked, id := made("ada")
	th.asOperator("token", "revoke", id)
	_, other := made("ada")
	th.asOperator("user", "add", "cas", "--password-stdin")
	disabled, _ := made("cas")
	th.asOperator("user", "disable", "cas")
	return &attacks.World{
		Address: address, Pages: net.JoinHostPort(u.Hostname(), "8444"), TLS: &tls.Config{RootCAs: ca, ServerName: u.Hostname(), MinVersion: tls.VersionTLS12},
		Owner: "ada", Job: "vault", Object: v1.ObjectName("ada", "vault"), Thief: "ben", Own: "own",
		OwnerToken: signedIn["ada"].Access.Reveal(), ThiefToken: signedIn["ben"].Access.Reveal(), Refresh: signedIn["ada"].Refresh.Reveal(),
		Revoked: revoked, TokenID: other, Disabled: disabled, Marks: []string{mark, signedIn["ada"].Access.Reveal()},
	}
}
