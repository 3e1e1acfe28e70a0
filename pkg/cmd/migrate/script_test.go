package migrate_test

import (
	"context"
	"crypto/md5"
	"crypto/pbkdf2"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/cmd"
	"github.com/openpai/paictl/pkg/cmd/cmdtest"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job/postgrestest"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/openpai"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server/servertest"
	"github.com/openpai/paictl/test/programs"
)

// stopping stops PostgreSQL after the tests, and removes the program that was built.
type stopping struct{ testscript.TestingM }

func (s stopping) Run() int {
	defer postgrestest.Stop()
	defer programs.Clean()
	return s.TestingM.Run()
}

func TestMain(m *testing.M) {
	cmdtest.Main(stopping{kubetest.Wrap(m)}, func() { os.Exit(cmd.Main(context.Background(), cmdutil.New("v0.0.0-test"), os.Args[1:])) })
}

func TestWithoutItsProgramTheHistoryIsNotOpened(t *testing.T) {
	cmdtest.RunFiles(t, []string{"testdata/absent.txtar"}, nil)
}

// stored creates a Secret in the form that OpenPAI's REST server uses.
func stored(t *testing.T, namespace, name string, data map[string]string) {
	t.Helper()
	core := kubetest.Start(t).Client.CoreV1()
	_, _ = core.Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}) // it may exist
	_, err := core.Secrets(namespace).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: hex.EncodeToString([]byte(name))}, Type: corev1.SecretTypeOpaque, StringData: data}, metav1.CreateOptions{})
	require.NoError(t, err)
}

func TestWhoComesFromOpenPAISignsInWithTheOldPassword(t *testing.T) {
	c := kubetest.Start(t)
	const name, old = "mig-alice", "one!23"
	salt := md5.Sum([]byte(name))
	hash, err := pbkdf2.Key(sha512.New, old, []byte(hex.EncodeToString(salt[:])), 10000, 64)
	require.NoError(t, err)
	stored(t, openpai.GroupNamespace, "mig-team", map[string]string{"groupname": "mig-team", "description": "a team", "externalName": "", "extension": `{"acls":{"admin":false,"virtualClusters":["vision"]}}`})
	stored(t, openpai.UserNamespace, name, map[string]string{"username": name, "password": hex.EncodeToString(hash), "grouplist": `["mig-team","gone"]`, "email": name + "@lab.example", "extension": `{"githubPAT":"SECRET"}`})
	t.Run("scripts", func(t *testing.T) { // which run side by side, and end with it
		cmdtest.RunFiles(t, []string{"testdata/openpai.txtar"}, map[string]string{"KUBECONFIG": kubetest.Kubeconfig(t)})
	})

	servertest.Prepare(t, c)
	s := servertest.Start(t, c, servertest.Options{})
	stores := func() string {
		secret, err := c.Client.CoreV1().Secrets(v1.Namespace).Get(t.Context(), v1.PasswordName(name), metav1.GetOptions{})
		require.NoError(t, err)
		return string(secret.Data["hash"])
	}
	assert.Contains(t, stores(), "pbkdf2")
	sign := func(password string) int {
		return s.Do("POST", "/api/v1/token", "", fmt.Sprintf(`{"username":%q,"password":%q}`, name, password)).Status
	}
	assert.Equal(t, 400, sign("another"))
	assert.Equal(t, 200, sign(old), "though it is too short for a new one")
	assert.Contains(t, stores(), "argon2id", "it is hashed in a better way now")
	assert.Equal(t, 200, sign(old))
	assert.Equal(t, 400, sign("another"))
}
