package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func seed(f *testing.F, patterns ...string) {
	for _, p := range patterns {
		files, err := filepath.Glob(p)
		require.NoError(f, err)
		for _, file := range files {
			b, err := os.ReadFile(file)
			require.NoError(f, err)
			f.Add(b)
		}
	}
}

// FuzzQuickStart checks that no quick-start file makes the generator panic, and that paictl can read the generated files.
func FuzzQuickStart(f *testing.F) {
	seed(f, "../../examples/quick-start*.yaml")
	f.Add([]byte("machines: [{hostip: 10.0.0.1, roles: worker}]\nmasters: ['']\n"))
	f.Add([]byte("machines: [10.0.0.1]\ngpu: simulate\nssh-password: \"\\n\\x01\"\nextra: {kubelet: {a: [1, {b: 2.0}]}}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		q, findings := ParseQuickStart("q.yaml", data)
		if findings.Err() != nil {
			return
		}
		g, err := q.generate(nil, Generation{OutDir: "c"})
		if err != nil {
			return
		}
		c, err := Parse("c", g.Files)
		require.NoError(t, err)
		require.NoError(t, Validate(c).Err())
		require.Equal(t, g.Cluster.Layout.SSH.Password.Reveal(), c.Layout.SSH.Password.Reveal())
		require.Len(t, c.Layout.MachineList, len(q.Machines))
	})
}

// FuzzFiles checks that no content of any of the four files makes loading, validating or showing a configuration panic.
func FuzzFiles(f *testing.F) {
	seed(f, "testdata/migrate/*-new/*.yaml")
	for _, text := range goodFiles() {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, name := range Files() {
			files := map[string][]byte{}
			for n, text := range goodFiles() {
				files[n] = []byte(text)
			}
			files[name] = data
			c, err := Parse("c", files)
			if err != nil {
				continue
			}
			_ = Validate(c)
			_, err = c.Annotated()
			require.NoError(t, err)
			for _, m := range c.Layout.MachineList {
				_ = c.Target(m)
				_, _ = c.LabelsOf(m), c.TaintsOf(m)
			}
		}
	})
}

// FuzzMigrate checks that no old layout, services file or config.yaml makes the migration panic.
func FuzzMigrate(f *testing.F) {
	seed(f, "testdata/migrate/g?/*.yaml")
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, name := range []string{LayoutFile, KubernetesFile, ServicesFile, oldConfigFile} {
			dir := t.TempDir()
			write(t, dir, LayoutFile, "machine-list: [{hostname: a, hostip: 10.0.0.1, k8s-role: master, pai-master: \"true\", machine-type: x}]\nmachine-sku: {x: {mem: 1}}\n")
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
			m, err := Migrate(dir, "new", nil)
			if err != nil {
				continue
			}
			_, err = Parse("new", m.Files)
			require.NoError(t, err)
		}
	})
}
