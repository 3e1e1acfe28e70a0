package store

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/hint"
)

const R = Reference

func TestASecretIsTakenOutHoweverItIsWritten(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"plain":                       {"ssh:\n  password: hunter2\n  port: 1\n", "ssh:\n  password: " + R + "\n  port: 1\n"},
		"plain before a comment":      {"ssh:\n  password: hunter2 # mine\n", "ssh:\n  password: " + R + " # mine\n"},
		"plain with a #":              {"ssh: {password: hun#ter2, port: 1}\n", "ssh: {password: " + R + ", port: 1}\n"},
		"plain with words":            {"ssh:\n  password: correct horse  battery\n", "ssh:\n  password: " + R + "\n"},
		"plain over lines":            {"ssh:\n  password: correct\n    horse\n\n    battery\n  port: 1\n", "ssh:\n  password: " + R + "\n  port: 1\n"},
		"a number":                    {"ssh:\n  password: 0123\n", "ssh:\n  password: " + R + "\n"},
		"single quotes":               {"ssh:\n  password: 'it''s #: \"x\"'\n", "ssh:\n  password: " + R + "\n"},
		"single quotes over lines":    {"ssh:\n  password: 'a\n\n    b'\n  port: 1\n", "ssh:\n  password: " + R + "\n  port: 1\n"},
		"double quotes":               {"ssh:\n  password: \"a\\\"b\\\\\" # x\n", "ssh:\n  password: " + R + " # x\n"},
		"double quotes over lines":    {"ssh:\n  password: \"a\\\n    b\n    c\"\n", "ssh:\n  password: " + R + "\n"},
		"a block":                     {"ssh:\n  password: |\n    one\n    two\n  port: 1\n", "ssh:\n  password: " + R + "\n  port: 1\n"},
		"a block that keeps its end":  {"ssh:\n  password: |+\n    one\n\n\n  port: 1\n", "ssh:\n  password: " + R + "\n  port: 1\n"},
		"a block without end":         {"ssh:\n  password: >-\n    one\n      two\n\n    three", "ssh:\n  password: " + R},
		"a block and a comment":       {"ssh:\n  password: | # secret\n    one\n  # after\n  port: 1\n", "ssh:\n  password: " + R + "\n  # after\n  port: 1\n"},
		"an anchor and a tag":         {"ssh:\n  password: &pw !!str hunter2\nmachine-list:\n- ssh: {password: *pw}\n", "ssh:\n  password: &pw !!str " + R + "\nmachine-list:\n- ssh: {password: *pw}\n"},
		"by an alias":                 {"machine-sku:\n  a: &x hunter2\nssh:\n  password: *x\n", "machine-sku:\n  a: &x " + R + "\nssh:\n  password: *x\n"},
		"by a merge":                  {"machine-list:\n- ssh: &s {password: hunter2}\n- ssh: {<<: *s, port: 1}\n", "machine-list:\n- ssh: &s {password: " + R + "}\n- ssh: {<<: *s, port: 1}\n"},
		"on the next line":            {"ssh:\n  password:\n    hunter2\n", "ssh:\n  password:\n    " + R + "\n"},
		"with an explicit key":        {"ssh:\n  ? password\n  : hunter2\n", "ssh:\n  ? password\n  : " + R + "\n"},
		"JSON":                        {"{\"ssh\":{\"password\":\"hunter2\",\"port\":1}}", "{\"ssh\":{\"password\":" + R + ",\"port\":1}}"},
		"Windows' line breaks":        {"ssh:\r\n  password: hunter2\r\n  port: 1\r\n", "ssh:\r\n  password: " + R + "\r\n  port: 1\r\n"},
		"a block, Windows' breaks":    {"ssh:\r\n  password: |\r\n    one\r\n    two\r\n  port: 1\r\n", "ssh:\r\n  password: " + R + "\r\n  port: 1\r\n"},
		"after letters of many bytes": {"ssh: {username: é世界😀, password: hunter2}\n", "ssh: {username: é世界😀, password: " + R + "}\n"},
		"after a byte order mark":     {"\ufeffssh: {password: hunter2}\n", "\ufeffssh: {password: " + R + "}\n"},
		"every machine's":             {"machine-list:\n- {hostname: a, ssh: {password: x1}}\n- {hostname: b, ssh: {password: x2}}\n", "machine-list:\n- {hostname: a, ssh: {password: " + R + "}}\n- {hostname: b, ssh: {password: " + R + "}}\n"},
		"repeated in a comment":       {"# hunter2 is the old one\nssh: {password: hunter2} # hunter2!\n", "# " + R + " is the old one\nssh: {password: " + R + "} # " + R + "!\n"},
		"commented out":               {"ssh:\n  # password: older\n  #- token: 'x y'\n  password: hunter2\n", "ssh:\n  # password: " + R + "\n  #- token: " + R + "\n  password: " + R + "\n"},
		"a sentence about secrets":    {"ssh: {port: 1}\n## Secret: kept in a safe place.\n", "ssh: {port: 1}\n## Secret: kept in a safe place.\n"},
		"none":                        {"# what a password: is for\nssh: {password: \"\", port: 1}\n# password: \"\"\nmachine-list: [{ssh: {password: }}]\n", "# what a password: is for\nssh: {password: \"\", port: 1}\n# password: \"\"\nmachine-list: [{ssh: {password: }}]\n"},
	} {
		t.Run(name, func(t *testing.T) {
			shown, parts, err := split("layout.yaml", []byte(tt.text), secretsOf(config.LayoutFile, nil))
			require.NoError(t, err)
			assert.Equal(t, tt.want, string(shown))
			back, err := join("layout.yaml", shown, parts)
			require.NoError(t, err)
			assert.Equal(t, tt.text, string(back))
		})
	}
}

func TestWhatCantBeTakenApartIsSecretAsAWhole(t *testing.T) {
	for name, text := range map[string]string{
		"an indentation that is told, not seen": "ssh:\n  password: |1\n     one\n   two\n  port: 1\n",
		"a # in a value that is no comment":     "ssh:\n  username: \"x # password: hunter2\"\n",
		"a comment like a secret in a block":    "ssh:\n  password: hunter2\nnote: |\n  # token: abc\n",
	} {
		t.Run(name, func(t *testing.T) {
			shown, parts, err := split("layout.yaml", []byte(text), secretsOf(config.LayoutFile, nil))
			require.NoError(t, err)
			assert.Equal(t, R+"\n", string(shown))
			back, err := join("layout.yaml", shown, parts)
			require.NoError(t, err)
			assert.Equal(t, text, string(back))
		})
	}
}

func TestWhatIsSecretInASectionOfUnknownMeaning(t *testing.T) {
	text := `cluster:
  docker-registry: {username: u, password: p1}
grafana:
  adminPassword: p2
  tokens: [p3, {value: p4}]
  credentials:
    any: {thing: p5, on: true}
  database: postgres://u:p6@db/x
  plain: https://db/x
  key: |
    -----BEGIN EC PRIVATE KEY-----
    p7
  secret-name: name
upstream:
  values: {a: b}
  injected: [p8, 42]
`
	find := secretsOf(config.ServicesFile, []strictyaml.Path{{"upstream", "injected"}, {"upstream", "missing"}, {"upstream", "values", 3}})
	shown, parts, err := split("s.yaml", []byte(text), find)
	require.NoError(t, err)
	var fields []string
	for _, p := range parts {
		fields = append(fields, p.Field)
	}
	assert.Equal(t, []string{"cluster.docker-registry.password", "grafana.adminPassword", "grafana.tokens[0]", "grafana.tokens[1].value",
		"grafana.credentials.any.thing", "grafana.database", "grafana.key", "upstream.injected[0]", "upstream.injected[1]"}, fields)
	for _, s := range []string{"p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "42"} {
		assert.NotContains(t, string(shown), s)
	}
	assert.Contains(t, string(shown), "plain: https://db/x")
	assert.Contains(t, string(shown), "secret-name: name")
}

func TestSettingsThatAreHandedThroughMayHoldSecrets(t *testing.T) {
	text := "kubernetes:\n  extra:\n    containerd:\n      plugins: {auths: {\"r.example\": {auth-token: hunter2}}}\n"
	shown, parts, err := split("k.yaml", []byte(text), secretsOf(config.KubernetesFile, nil))
	require.NoError(t, err)
	require.Len(t, parts, 1)
	assert.Equal(t, `kubernetes.extra.containerd.plugins.auths["r.example"].auth-token`, parts[0].Field)
	assert.NotContains(t, string(shown), "hunter2")
}

func TestACopyWithoutSecretsIsNotTakenForTheRealOne(t *testing.T) {
	for name, text := range map[string]string{
		"references": "ssh: {password: " + R + "}\n",
		"masks":      "ssh: {password: \"********\"}\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := split("layout.yaml", []byte(text), secretsOf(config.LayoutFile, nil))
			require.Error(t, err)
			assert.NotEmpty(t, hint.Of(err))
		})
	}
}

func TestReferencesWithoutSecretsAreRefused(t *testing.T) {
	_, err := join("layout.yaml", []byte("a: "+R+"\nb: "+R+"\n"), []part{{"a", "x"}})
	require.EqualError(t, err, "layout.yaml has 2 references to secrets, but there are 1 secrets")
}

// everything treats all scalars as secrets, so that the fuzzer covers many forms of scalars.
func everything(root *yaml.Node) []found {
	w := walker{seen: map[visit]bool{}, taken: map[*yaml.Node]bool{}}
	w.all(root, "all")
	return w.found
}

func FuzzSplice(f *testing.F) {
	for _, text := range []string{"a: b\n", "a: 'b''c'\nd: \"e\\\"f\"\n", "a: |+\n  b\n\n\nc: >-\n  d\n  e", "a: &x b\nc: *x\n<<: {d: e}\n",
		"? a\n: b\n", "[a, 'b', \"c\", {d: e}]", "a: b # c\n# d: e\n", "a: b\n  c\n\n  d\n", "\ufeffa: b\r\nc: |\r\n  d\r\n", "a: !!str b\n", "a: |2\n    b\n   c\n", "# token: x\na: x\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, findings := strictyaml.Parse("a.yaml", text); len(findings) > 0 {
			t.Skip()
		}
		shown, parts, err := split("a.yaml", text, everything)
		if err != nil {
			return
		}
		back, err := join("a.yaml", shown, parts)
		require.NoError(t, err)
		require.Equal(t, string(text), string(back))
		root, err := parse(shown)
		require.NoError(t, err)
		for _, s := range everything(root) {
			require.Equal(t, referenceText, s.node.Value, "%s", shown)
		}
	})
}

func TestAProxysAddressIsASecret(t *testing.T) {
	text := "kubernetes: {proxy: {https: 'http://u:hunter2@p:1', no-proxy: [a]}}\n"
	shown, parts, err := split(config.KubernetesFile, []byte(text), secretsOf(config.KubernetesFile, nil))
	require.NoError(t, err)
	assert.Equal(t, "kubernetes: {proxy: {https: "+R+", no-proxy: [a]}}\n", string(shown))
	require.Len(t, parts, 1)
	assert.Equal(t, "kubernetes.proxy.https", parts[0].Field)
}
