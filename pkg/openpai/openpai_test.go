package openpai_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/openpai"
	"github.com/openpai/paictl/pkg/people"
	v1 "github.com/openpai/paictl/pkg/people/v1"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Wrap(m).Run()) }

const (
	// alicesHash is the hash that OpenPAI stores for alice's password "alice's old password".
	alicesHash = "8daf9e289f39298030c3cd3aa93e0753c283aec5ee536087938de6af47ac5c65e14afdf8d988caac0a235dbc46ba5e331360bea32cccf7cf7daf6a73911a8cf1"
	key        = `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBrVnTPmkCdvhZbQ6uzHMVcQAuRqgNMQJ5mGVT0uwqfM laptop`
)

// stored creates a Secret in the form that OpenPAI's REST server writes.
func stored(t *testing.T, c *kube.Cluster, namespace, name string, data map[string]string) {
	t.Helper()
	raw := map[string][]byte{}
	for k, v := range data {
		raw[k] = []byte(v)
	}
	_, err := c.Client.CoreV1().Secrets(namespace).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: hex.EncodeToString([]byte(name))}, Type: corev1.SecretTypeOpaque, Data: raw}, metav1.CreateOptions{})
	require.NoError(t, err)
}

func group(name, extension string) map[string]string {
	return map[string]string{"groupname": name, "description": "of " + name, "externalName": "", "extension": extension}
}

func person(name, groups, extension string) map[string]string {
	return map[string]string{"username": name, "password": alicesHash, "grouplist": groups, "email": name + "@lab.example", "extension": extension}
}

// old returns a cluster with data that OpenPAI has stored.
func old(t *testing.T) (*kube.Cluster, *people.Directory) {
	t.Helper()
	c := kubetest.Start(t)
	for _, namespace := range []string{openpai.UserNamespace, openpai.GroupNamespace} {
		_, err := c.Client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			require.NoError(t, err)
		}
		require.NoError(t, c.Client.CoreV1().Secrets(namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	}
	d, err := people.Open(c.Config, people.Options{})
	require.NoError(t, err)
	require.NoError(t, d.Prepare(t.Context()))
	api, err := dynamic.NewForConfig(c.Config)
	require.NoError(t, err)
	require.NoError(t, api.Resource(v1.Users).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	require.NoError(t, api.Resource(v1.Groups).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	require.NoError(t, c.Client.CoreV1().Secrets(v1.Namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	require.NoError(t, d.Load(t.Context()))
	require.NoError(t, d.Prepare(t.Context()))
	require.NoError(t, d.Load(t.Context()))
	return c, d
}

func plan(t *testing.T, c *kube.Cluster, d *people.Directory, o openpai.Options) map[string]openpai.Step {
	t.Helper()
	out := map[string]openpai.Step{}
	for _, s := range steps(t, c, d, o) {
		out[s.Kind+" "+s.Name] = s
	}
	return out
}

func steps(t *testing.T, c *kube.Cluster, d *people.Directory, o openpai.Options) []openpai.Step {
	t.Helper()
	src, err := openpai.Read(t.Context(), c.Client, openpai.UserNamespace, openpai.GroupNamespace)
	require.NoError(t, err)
	out, err := openpai.Plan(t.Context(), src, d, o)
	require.NoError(t, err)
	return out
}

func TestPeopleOfOpenPAIAreTakenOver(t *testing.T) {
	c, d := old(t)
	stored(t, c, openpai.GroupNamespace, "admingroup", group("admingroup", `{"acls":{"admin":true,"virtualClusters":[]}}`))
	stored(t, c, openpai.GroupNamespace, "default", group("default", `{"acls":{"admin":false,"virtualClusters":["default"],"storageConfigs":["nfs"]}}`))
	stored(t, c, openpai.GroupNamespace, "vision", map[string]string{"groupname": "vision", "description": "", "externalName": "mail-vision", "extension": `{"color":"blue","acls":{"admin":false,"virtualClusters":["vision","vision"],"storageConfigs":["nfs","data"]}}`})
	stored(t, c, openpai.GroupNamespace, "_odd", group("_odd", `{"acls":{"virtualClusters":["x"]}}`))
	stored(t, c, openpai.GroupNamespace, "broken", group("broken", `{"acls":`))
	stored(t, c, openpai.UserNamespace, "alice", person("alice", `["default","vision","gone"]`, `{"sshKeys":[{"title":"laptop","value":"`+key+`","time":1},{"title":"bad","value":"none"}],"jobSSH":{"key":"PRIVATE","pubKey":"x"}}`))
	stored(t, c, openpai.UserNamespace, "Boss", person("Boss", `["admingroup"]`, `{}`))
	stored(t, c, openpai.UserNamespace, "boss", person("boss", `["default"]`, `{}`))
	stored(t, c, openpai.UserNamespace, "oidc", map[string]string{"username": "oidc", "password": "4f1e-oid", "grouplist": `["vision"]`, "email": "not an address", "extension": ""})
	stored(t, c, openpai.UserNamespace, ".dot", person(".dot", `[]`, `{}`))
	stored(t, c, openpai.UserNamespace, "list", person("list", `"default"`, `{}`))
	stored(t, c, openpai.UserNamespace, "wrong", person("other", `[]`, `{}`))
	_, err := d.Add(t.Context(), people.NewUser{Name: "there", Password: "correct horse battery"})
	require.NoError(t, err)
	stored(t, c, openpai.UserNamespace, "there", person("there", `["admingroup"]`, `{"jobSSH":{}}`))

	got := plan(t, c, d, openpai.Options{Passwords: true})
	for name, want := range map[string]string{
		"group admingroup": openpai.Add, "group default": openpai.Keep, "group vision": openpai.Add, "group _odd": openpai.LeaveOut, "secret pai-group/" + hex.EncodeToString([]byte("broken")): openpai.LeaveOut,
		"user alice": openpai.Add, "user Boss": openpai.Add, "user boss": openpai.LeaveOut, "user oidc": openpai.Add, "user .dot": openpai.LeaveOut, "user there": openpai.Keep,
		"secret pai-user-v2/" + hex.EncodeToString([]byte("list")): openpai.LeaveOut, "secret pai-user-v2/" + hex.EncodeToString([]byte("wrong")): openpai.LeaveOut,
	} {
		assert.Equal(t, want, got[name].Action, name)
	}
	assert.Len(t, got, 13)
	assert.Equal(t, []string{"it granted more in OpenPAI: paictl group set default --add-storage nfs"}, got["group default"].Notes)
	assert.Equal(t, []string{"the external name mail-vision is left out: name its provider of sign-ins with --provider"}, got["group vision"].Notes)
	assert.Equal(t, []string{"the group gone doesn't exist", `the public key "bad" is left out: it can't be read`}, got["user alice"].Notes)
	assert.Len(t, got["user oidc"].Notes, 2)
	shown, err := json.Marshal(got)
	require.NoError(t, err)
	for _, secret := range []string{"PRIVATE", alicesHash, "4f1e-oid"} {
		assert.NotContains(t, string(shown), secret)
	}
	_, err = d.Person("alice")
	require.ErrorIs(t, err, people.ErrNoUser, "a plan changes nothing")

	require.NoError(t, openpai.Apply(t.Context(), d, steps(t, c, d, openpai.Options{SeeJobs: true, Provider: "lab", Passwords: true}), func(*openpai.Step) {}))
	alice, err := d.Person("alice")
	require.NoError(t, err)
	assert.Equal(t, []string{"default", "vision"}, alice.User.Spec.Groups)
	assert.Equal(t, "alice@lab.example", alice.User.Spec.Email)
	assert.Equal(t, []v1.SSHKey{{Title: "laptop", Value: key}}, alice.User.Spec.SSHKeys)
	assert.True(t, alice.Grants.VCs["vision"].SeeJobs)
	assert.Equal(t, []string{"nfs", "data"}, alice.Grants.Storages)
	extension, err := d.Extension(t.Context(), "alice")
	require.NoError(t, err)
	assert.JSONEq(t, `{"key":"PRIVATE","pubKey":"x"}`, string(extension["jobSSH"]))
	vision, err := d.Group("vision")
	require.NoError(t, err)
	assert.Equal(t, []v1.ExternalGroup{{Provider: "lab", Name: "mail-vision"}}, vision.Spec.External)
	assert.JSONEq(t, `{"color":"blue"}`, string(vision.Spec.Extension.Raw))
	boss, err := d.Person("Boss")
	require.NoError(t, err)
	assert.True(t, boss.Grants.Administrator)
	there, err := d.Person("there")
	require.NoError(t, err)
	assert.False(t, there.Grants.Administrator, "who is there gets nothing")

	for name, s := range plan(t, c, d, openpai.Options{Passwords: true}) {
		assert.Contains(t, []string{openpai.Keep, openpai.LeaveOut}, s.Action, "%s: a second run changes nothing", name)
	}
}

func TestARunThatWasKilledIsFinishedByTheNext(t *testing.T) {
	c, d := old(t)
	stored(t, c, openpai.UserNamespace, "alice", person("alice", `["default"]`, `{"a":1,"b":2,"sshKeys":[{"title":"laptop","value":"`+key+`"}]}`))
	// The earlier run was killed after it created the User, so neither the password nor the keys are stored yet.
	_, err := d.Add(t.Context(), people.NewUser{Name: "alice", From: "openpai"})
	require.NoError(t, err)
	_, err = d.MergeExtension(t.Context(), "alice", people.Extension{"b": json.RawMessage("3")})
	require.NoError(t, err)
	todo := steps(t, c, d, openpai.Options{Passwords: true})
	require.Equal(t, openpai.Complete, todo[0].Action)
	require.NoError(t, openpai.Apply(t.Context(), d, todo, func(*openpai.Step) {}))
	p, err := d.Person("alice")
	require.NoError(t, err)
	password, err := d.Password(t.Context(), p)
	require.NoError(t, err)
	assert.Contains(t, password.Hash, alicesHash)
	assert.Len(t, p.User.Spec.SSHKeys, 1)
	extension, err := d.Extension(t.Context(), "alice")
	require.NoError(t, err)
	assert.Equal(t, people.Extension{"a": json.RawMessage("1"), "b": json.RawMessage("3")}, extension, "what was changed since stays")
	assert.Equal(t, openpai.Keep, plan(t, c, d, openpai.Options{Passwords: true})["user alice"].Action)

	// A password that was set after the import isn't replaced.
	require.NoError(t, d.SetPassword(t.Context(), "alice", "another long phrase"))
	require.NoError(t, openpai.Apply(t.Context(), d, todo[:0], func(*openpai.Step) {}))
	assert.Equal(t, openpai.Keep, plan(t, c, d, openpai.Options{Passwords: true})["user alice"].Action)
}

func TestWhatWasTakenAwaySinceDoesNotComeBack(t *testing.T) {
	c, d := old(t)
	for _, name := range []string{"alice", "linda"} {
		stored(t, c, openpai.UserNamespace, name, person(name, `["default"]`, `{"a":1,"sshKeys":[{"title":"laptop","value":"`+key+`"}]}`))
	}
	apply := func(o openpai.Options) {
		require.NoError(t, openpai.Apply(t.Context(), d, steps(t, c, d, o), func(*openpai.Step) {}))
	}
	apply(openpai.Options{})
	for _, name := range []string{"alice", "linda"} {
		_, err := d.Update(t.Context(), name, func(s *v1.UserSpec) error {
			if s.SSHKeys = nil; name == "linda" {
				s.Identities = []v1.Identity{{Provider: "lab", Subject: "7"}}
			}
			return nil
		})
		require.NoError(t, err)
		_, err = d.MergeExtension(t.Context(), name, people.Extension{"a": nil})
		require.NoError(t, err)
	}
	apply(openpai.Options{Passwords: true})
	for _, name := range []string{"alice", "linda"} {
		p, err := d.Person(name)
		require.NoError(t, err)
		assert.Empty(t, p.User.Spec.SSHKeys, "a key that was revoked stays so")
		extension, err := d.Extension(t.Context(), name)
		require.NoError(t, err)
		assert.Empty(t, extension)
		password, err := d.Password(t.Context(), p)
		require.NoError(t, err)
		assert.Equal(t, name == "alice", password != nil, "who is known to a provider gets no password")
	}
	require.NoError(t, c.Client.CoreV1().Secrets(v1.Namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	apply(openpai.Options{Passwords: true})
	p, err := d.Person("alice")
	require.NoError(t, err)
	password, err := d.Password(t.Context(), p)
	require.NoError(t, err)
	assert.Nil(t, password, "it was there, and has been taken away")
}

func TestAnApplyThatFailsSaysWhere(t *testing.T) {
	c, d := old(t)
	stored(t, c, openpai.GroupNamespace, "vision", group("vision", `{"acls":{"virtualClusters":["vision"]}}`))
	stored(t, c, openpai.UserNamespace, "alice", person("alice", `["vision"]`, `{}`))
	todo := steps(t, c, d, openpai.Options{})
	_, err := d.PutGroup(t.Context(), &v1.Group{Spec: v1.GroupSpec{Name: "vision", Description: "made meanwhile"}})
	require.NoError(t, err)
	done := 0
	err = openpai.Apply(t.Context(), d, todo, func(*openpai.Step) { done++ })
	require.ErrorIs(t, err, people.ErrExists)
	assert.ErrorContains(t, err, "group vision")
	assert.Zero(t, done)
	g, err := d.Group("vision")
	require.NoError(t, err)
	assert.Equal(t, "made meanwhile", g.Spec.Description, "it isn't written over")

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("stopped"))
	require.Error(t, openpai.Apply(ctx, d, todo[1:], func(*openpai.Step) {}))
	_, err = openpai.Read(t.Context(), c.Client, "no-such-namespace", openpai.GroupNamespace)
	require.ErrorContains(t, err, "look for OpenPAI's namespace no-such-namespace")
}

func TestPasswordsAreTakenOnlyWhereThatIsAskedFor(t *testing.T) {
	c, d := old(t)
	// With OIDC, the hash is the hash of the person's object id, which other people may know. It looks like the hash of a password.
	stored(t, c, openpai.UserNamespace, "alice", person("alice", `[]`, `{}`))
	todo := steps(t, c, d, openpai.Options{})
	assert.Equal(t, []string{"the password: set one with paictl user passwd alice, or name a provider's person with paictl user link alice"}, todo[0].Notes)
	require.NoError(t, openpai.Apply(t.Context(), d, todo, func(*openpai.Step) {}))
	p, err := d.Person("alice")
	require.NoError(t, err)
	password, err := d.Password(t.Context(), p)
	require.NoError(t, err)
	require.Nil(t, password)
	assert.Equal(t, openpai.Keep, plan(t, c, d, openpai.Options{})["user alice"].Action)

	require.NoError(t, openpai.Apply(t.Context(), d, steps(t, c, d, openpai.Options{Passwords: true}), func(*openpai.Step) {}))
	password, err = d.Password(t.Context(), p)
	require.NoError(t, err)
	require.NotNil(t, password, "a later run brings it")
	assert.Contains(t, password.Hash, alicesHash)
}

func TestNoOneGetsMoreByTheNameOfAGroup(t *testing.T) {
	c, d := old(t)
	for name, spec := range map[string]v1.GroupSpec{
		"same": {VirtualClusters: []v1.VCGrant{{Name: "vision"}}, Storages: []string{"nfs"}}, "less": {}, "bosses": {Administrator: true, AllVirtualClusters: true, Pages: []string{"alerts"}},
		"admins": {Administrator: true}, "every": {AllVirtualClusters: true}, "pages": {Pages: []string{"monitoring"}}, "vc": {VirtualClusters: []v1.VCGrant{{Name: "nlp"}}}, "store": {Storages: []string{"data"}},
		"crit": {VirtualClusters: []v1.VCGrant{{Name: "vision", MaxPriority: "crit"}}}, "net": {VirtualClusters: []v1.VCGrant{{Name: "vision", HostNetwork: true}}},
		"see": {VirtualClusters: []v1.VCGrant{{Name: "vision", SeeJobs: true}}}, "bossstore": {Administrator: true, Storages: []string{"data"}}, "dangling": {Storages: []string{"data"}}, "empty": {},
	} {
		spec.Name = name
		_, err := d.PutGroup(t.Context(), &v1.Group{Spec: spec})
		require.NoError(t, err)
		acls := `{"acls":{"admin":false,"virtualClusters":["vision"],"storageConfigs":["nfs"]}}`
		if name == "bosses" || name == "bossstore" {
			acls = `{"acls":{"admin":true}}`
		}
		if name != "dangling" && name != "empty" {
			stored(t, c, openpai.GroupNamespace, name, group(name, acls))
		}
	}
	stored(t, c, openpai.GroupNamespace, "administrators", group("administrators", `{"acls":{"virtualClusters":["vision"]}}`))
	stored(t, c, openpai.GroupNamespace, "new", group("new", `{"acls":{"admin":true}}`))
	stored(t, c, openpai.UserNamespace, "alice", person("alice",
		`["administrators","same","less","bosses","admins","every","pages","vc","store","crit","net","see","bossstore","dangling","empty","default","new"]`, `{}`))
	todo := steps(t, c, d, openpai.Options{Passwords: true})
	notes := todo[len(todo)-1].Notes
	assert.Contains(t, notes, "the group administrators is left out, it grants more here than in OpenPAI: paictl group add-member administrators alice")
	assert.Len(t, notes, 12)
	require.NoError(t, openpai.Apply(t.Context(), d, todo, func(*openpai.Step) {}))
	alice, err := d.Person("alice")
	require.NoError(t, err)
	// The group default is left out, too, because this OpenPAI has no Secret for that group.
	assert.ElementsMatch(t, []string{"same", "less", "bosses", "empty", "new"}, alice.User.Spec.Groups)

	// If a group that an earlier run created now grants more, it gets no members either.
	_, err = d.ChangeGroup(t.Context(), "same", false, func(g *v1.GroupSpec) error {
		g.Administrator = true
		return nil
	})
	require.NoError(t, err)
	stored(t, c, openpai.UserNamespace, "bert", person("bert", `["same"]`, `{}`))
	require.NoError(t, openpai.Apply(t.Context(), d, steps(t, c, d, openpai.Options{}), func(*openpai.Step) {}))
	bert, err := d.Person("bert")
	require.NoError(t, err)
	assert.Empty(t, bert.Groups)
}

func TestTokensOfProgramsAreCountedAndNotTaken(t *testing.T) {
	c, d := old(t)
	stored(t, c, openpai.UserNamespace, "alice", person("alice", `[]`, `{}`))
	stored(t, c, openpai.UserNamespace, "bob", person("bob", `[]`, `{}`))
	src, err := openpai.Read(t.Context(), c.Client, openpai.UserNamespace, openpai.GroupNamespace)
	require.NoError(t, err)
	assert.Empty(t, src.Tokens, "an OpenPAI without that namespace has none")

	_, err = c.Client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: openpai.TokenNamespace}}, metav1.CreateOptions{})
	require.NoError(t, err)
	signed := func(claims string) string {
		return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".TOKEN-SECRET"
	}
	stored(t, c, openpai.TokenNamespace, "alice", map[string]string{
		"a": signed(`{"username":"alice","application":true}`), "b": signed(`{"username":"alice","application":true}`), "session": signed(`{"username":"alice"}`),
	})
	stored(t, c, openpai.TokenNamespace, "bob", map[string]string{"session": signed(`{"application":false}`), "odd": "x.y.z", "none": "", "list": signed(`[]`)})
	src, err = openpai.Read(t.Context(), c.Client, openpai.UserNamespace, openpai.GroupNamespace)
	require.NoError(t, err)
	assert.Equal(t, map[string]int{"alice": 2}, src.Tokens)
	all := plan(t, c, d, openpai.Options{Passwords: true})
	assert.Contains(t, all["user alice"].Notes, "2 application tokens: alice makes new ones with paictl token create")
	assert.Empty(t, all["user bob"].Notes)
	text, err := json.Marshal(all)
	require.NoError(t, err)
	assert.NotContains(t, string(text), "TOKEN-SECRET")
}
