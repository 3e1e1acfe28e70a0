package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/version"
)

func TestOldConfigurationsMigrateAsTheGoldenFilesSay(t *testing.T) {
	for name, format := range map[string]Format{"g1": G1, "g2": G2} {
		t.Run(name, func(t *testing.T) {
			old := filepath.Join("testdata", "migrate", name)
			m, err := Migrate(old, "new", nil)
			require.NoError(t, err)
			assert.Equal(t, format, m.From)
			for _, file := range Files() {
				text := strings.ReplaceAll(string(m.Files[file]), version.Version, "VERSION")
				golden(t, filepath.Join("migrate", name+"-new", file), []byte(strings.ReplaceAll(text, version.Kubernetes, "KUBERNETES")))
			}
			notes, err := json.MarshalIndent(m.Notes, "", "  ")
			require.NoError(t, err)
			golden(t, filepath.Join("migrate", name+"-new", "notes.json"), append(notes, '\n'))
			for _, secret := range []string{"topsecretkey", "readersecret", "secretpw", "mailsecret", "tokensecret", `for"example`} {
				assert.NotContains(t, string(notes), secret)
			}
			dir := t.TempDir()
			require.NoError(t, WriteFolder(dir, m.Files, m.Cluster.HoldsSecret, false))
			valid(t, dir)
		})
	}
}

// Every scalar of an old file must be either in the new files or in the notes.
func TestMigrationLosesNothingInSilence(t *testing.T) {
	for _, name := range []string{"g1", "g2"} {
		m := &migrator{dir: filepath.Join("testdata", "migrate", name), docs: map[string]*oldDoc{}}
		require.NoError(t, m.read())
		out, err := Migrate(m.dir, "new", nil)
		require.NoError(t, err)
		var files strings.Builder
		for _, b := range out.Files {
			files.Write(b)
		}
		noted := func(file, field string) bool {
			return slices.ContainsFunc(out.Notes, func(n MigrationNote) bool { return n.File == file && strings.HasPrefix(field, n.Field) })
		}
		for _, file := range slices.Sorted(maps.Keys(m.docs)) {
			walk(m.docs[file].root, nil, func(p fieldPath, v any) {
				if noted(file, p.String()) || p.String() == "" {
					return
				}
				key, _ := p[len(p)-1].(string)
				text := m.docs[file].doc.Scalar(p...)
				switch {
				case strings.HasPrefix(key, "pai-"), key == "k8s-role", key == "nodename", key == "sshport" && text == "22", key == "ssh-port" && text == "22", key == "docker-data", text == "nvidia.com/gpu":
				case text == "true" && key == "enable_docker_cache":
					assert.Contains(t, files.String(), "enabled: true")
				default:
					assert.Contains(t, strings.ReplaceAll(files.String(), `\"`, `"`), text, "%s: %s", file, p)
				}
			})
		}
	}
}

func walk(v any, p fieldPath, visit func(fieldPath, any)) {
	switch x := v.(type) {
	case map[string]any:
		for k, e := range x {
			walk(e, p.With(k), visit)
		}
	case []any:
		for i, e := range x {
			walk(e, p.With(i), visit)
		}
	default:
		visit(p, v)
	}
}

func TestMailsOfTheOriginalAreMovedTogetherOrNotAtAll(t *testing.T) {
	const layoutText = "machine-sku: {x: {mem: 1, cpu: {vcore: 1}, os: a}}\nmachine-list: [{hostname: a, hostip: 10.0.0.1, k8s-role: master, pai-master: \"true\", machine-type: x}]\n"
	for name, c := range map[string]struct {
		section string
		want    map[string]any
		reason  string
	}{
		"host and port in one": {"{receiver: 'a@b;c@d a@b', smtp_url: 'h:465', smtp_from: p@h}",
			map[string]any{"smtpHost": "h", "smtpPort": 465, "from": "p@h", "to": []any{"a@b", "c@d"}}, "alert-manager.receivers.email.smtpHost now"},
		"no receiver":         {"{smtp_url: 'h:465', smtp_from: p@h, smtp_auth_password: x}", nil, "and receiver is missing or not valid"},
		"a sender without @":  {"{email-configs: {admin-receiver: a@b, smtp-host: h, smtp-from: p}}", nil, "and email-configs.smtp-from is missing or not valid"},
		"a server with a URL": {"{receiver: a@b, smtp_url: 'https://h', smtp_from: p@h}", nil, "and smtp_url is missing or not valid"},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := Migrate(folder(t, map[string]string{LayoutFile: layoutText, ServicesFile: "alert-manager: " + c.section + "\n"}), "new", nil)
			require.NoError(t, err)
			var got map[string]any
			if section, ok := m.Cluster.Services.Sections["alert-manager"].(map[string]any); ok {
				got = section["receivers"].(map[string]any)["email"].(map[string]any)
			}
			assert.Equal(t, c.want, got)
			assert.Contains(t, fmt.Sprint(m.Notes), c.reason)
		})
	}
}

func TestGrafanaAsksPrometheusWhereItIs(t *testing.T) {
	m := &migrator{docs: map[string]*oldDoc{}, c: &Cluster{}, dir: folder(t, map[string]string{ServicesFile: "grafana: {port: 3001}\nprometheus: {port: 9091}\n"})}
	require.NoError(t, m.read())
	m.services()
	assert.Equal(t, map[string]any{
		"grafana":    map[string]any{"service": map[string]any{"port": 3001}, "prometheus": map[string]any{"url": "http://prometheus:9091"}},
		"prometheus": map[string]any{"service": map[string]any{"port": 9091}},
	}, m.c.Services.Sections)
}

func TestFormatsAreToldApart(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  Format
	}{
		"ours":             {goodFiles(), Current},
		"ours, no version": {map[string]string{LayoutFile: "machine-list: [{hostname: a, hostip: 10.0.0.1, machine-type: x, roles: [master]}]\n"}, Current},
		"0.14":             {map[string]string{LayoutFile: "machine-list: [{hostname: a, nodename: b}]\n"}, G1},
		"1.8":              {map[string]string{LayoutFile: "machine-sku: {a: {computing-device: {type: t}}}\nmachine-list: [{hostname: a, pai-master: \"true\"}]\n"}, G2},
		"1.8 without GPUs": {map[string]string{LayoutFile: "machine-list: [{hostname: a, pai-master: \"true\"}]\n", "config.yaml": "user: a\n"}, G2},
		"a map":            {map[string]string{LayoutFile: "a: 1\n"}, Unknown},
		"no machines":      {map[string]string{LayoutFile: "machine-list: []\n"}, Unknown},
		"an address only":  {map[string]string{LayoutFile: "machine-list: [{hostip: 10.0.0.1}]\n"}, Unknown},
		"a later machine":  {map[string]string{LayoutFile: "machine-list: [{hostname: a}, {hostname: b, pai-worker: \"true\"}]\n"}, G2},
		"0.6":              {map[string]string{"cluster-configuration.yaml": "x: 1\n"}, G0},
		"1.2":              {map[string]string{"master.csv": "a,1.2.3.4\n"}, G15},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Detect(folder(t, c.files))
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
		})
	}
}

func TestOldFormatsAreNamedByOtherCommands(t *testing.T) {
	_, err := Load(filepath.Join("testdata", "migrate", "g2"))
	require.ErrorContains(t, err, "has the format of OpenPAI 1.5 and later")
	_, err = Migrate(folder(t, goodFiles()), "new", nil)
	require.ErrorContains(t, err, "already has paictl's own format")
	_, err = Migrate(folder(t, map[string]string{"master.csv": "a,1.2.3.4\n"}), "new", nil)
	require.ErrorContains(t, err, "has no layout.yaml")
	_, err = Migrate(folder(t, map[string]string{LayoutFile: "a: 1\n"}), "new", nil)
	require.ErrorContains(t, err, "layout.yaml has no format that paictl knows")
	old := folder(t, map[string]string{LayoutFile: "machine-list:\n- {hostname: a, hostip: 999.0.0.1, pai-master: \"true\"}\n"})
	_, err = Migrate(old, "new", nil)
	require.ErrorContains(t, err, filepath.Join(old, LayoutFile)+`:2:25: machine-list[0].hostip: "999.0.0.1" is not an IP address`, "a mistake is in the file that has it")
	require.NotContains(t, err.Error(), "one of: \n")
	require.NotContains(t, err.Error(), "new/", "which isn't written")
	_, err = Migrate(t.TempDir(), "new", nil)
	require.ErrorContains(t, err, "find the old configuration")
}

func TestCommonPropertiesOfTheOldestLayoutsReachTheMachines(t *testing.T) {
	m, err := Migrate(folder(t, map[string]string{LayoutFile: `
default-machine-properties: {username: core, password: common, sshport: 2222}
machine-sku: {x: {mem: 64, cpu: {vcore: 8}, os: ubuntu16.04}}
machine-list:
  - {hostname: a, hostip: 10.0.0.1, machine-type: x, k8s-role: master, pai-master: "true"}
  - {hostname: b, hostip: 10.0.0.2, machine-type: x, k8s-role: worker, pai-worker: "true", password: own, sshport: 22}
  - {hostname: c, hostip: 10.0.0.3, machine-type: x, k8s-role: worker, pai-worker: "true", keyfile-path: /k, password: ""}
`}), "new", nil)
	require.NoError(t, err)
	var got []string
	for _, machine := range m.Cluster.Layout.MachineList {
		target := m.Cluster.Target(machine)
		got = append(got, strings.Join([]string{target.User, target.Password.Reveal(), target.KeyFile, target.Addr()}, " "))
	}
	assert.Equal(t, []string{"core common  10.0.0.1:2222", "core own  10.0.0.2:22", "core common /k 10.0.0.3:2222"}, got)
}
