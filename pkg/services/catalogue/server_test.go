package catalogue

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPeopleReachTheServerOnTheMasters(t *testing.T) {
	c, found, err := Load(t.Context(), gpuCluster(t, 1, "rest-server: {names: [gpu.example.org], service: {hostPorts: {https: 8443}}}\n"), Options{})
	require.NoError(t, err)
	require.NoError(t, found.Err())
	s := c.Get(ServerService)
	require.True(t, s.Enabled)
	hosts, port := ServerAddresses(s)
	assert.Equal(t, "gpu.example.org", hosts[0], "a name is better than an address")
	assert.Greater(t, len(hosts), 1)
	assert.Equal(t, 8443, port)
	assert.Equal(t, int64(len(hosts)-1), s.Values["replicas"], "one for each machine")
	assert.True(t, OwnAuthority(s))

	c, found, err = Load(t.Context(), gpuCluster(t, 1, "rest-server: {expose: service, tls: {secretName: mine}}\n"), Options{})
	require.NoError(t, err)
	require.NoError(t, found.Err())
	_, port = ServerAddresses(c.Get(ServerService))
	assert.Equal(t, 443, port)
	assert.False(t, OwnAuthority(c.Get(ServerService)))

	c, found, err = Load(t.Context(), gpuCluster(t, 1, "rest-server: {names: [gpu.example.org], acme: {enabled: true, acceptTerms: true}}\n"), Options{})
	require.NoError(t, err)
	require.NoError(t, found.Err())
	assert.False(t, OwnAuthority(c.Get(ServerService)))
}

func TestTheServersPortMustBeFreeOnlyWhereItListensOnMachines(t *testing.T) {
	_, found, err := Load(t.Context(), gpuCluster(t, 1, "rest-server: {service: {hostPorts: {https: 6443}}}\n"), Options{})
	require.NoError(t, err)
	require.ErrorContains(t, found.Err(), "port 6443 of the machines is used by")
	_, found, err = Load(t.Context(), gpuCluster(t, 1, "rest-server: {expose: service, service: {hostPorts: {https: 6443}}}\n"), Options{})
	require.NoError(t, err)
	require.NoError(t, found.Err())
}

func TestAnIngressNeedsToBeTrusted(t *testing.T) {
	for section, want := range map[string]string{
		"{expose: ingress, names: [gpu.example.org]}":                                 "rest-server.trustedProxies",
		"{expose: ingress, names: [gpu.example.org], trustedProxies: []}":             "rest-server.trustedProxies",
		"{expose: ingress, names: [gpu.example.org], trustedProxies: [10.0.0.11/32]}": "",
		"{expose: service}": "", "{}": "",
	} {
		_, found, err := Load(t.Context(), gpuCluster(t, 1, "rest-server: "+section+"\n"), Options{})
		require.NoError(t, err)
		if want == "" {
			assert.NoError(t, found.Err(), section)
			continue
		}
		require.Len(t, found, 1, section)
		assert.Contains(t, found[0].Remedy, want, section)
	}
}

func TestNamesOfTheOriginalMeanTheServer(t *testing.T) {
	c, _, err := Load(t.Context(), gpuCluster(t, 1, ""), Options{})
	require.NoError(t, err)
	for _, names := range [][]string{{"pylon"}, {"webportal", "rest-server"}, {"rest-server"}} {
		chosen, err := c.Select(names, nil)
		require.NoError(t, err)
		assert.Equal(t, ServerService, chosen.Services[len(chosen.Services)-1].Name)
	}
}

func TestSettingsOfTheOriginalsServerAreForgottenAndStaySecret(t *testing.T) {
	cfg := gpuCluster(t, 1, "rest-server: {default-pai-admin-username: admin, default-pai-admin-password: hunter2, jwt-secret: hunter3, limits: {perMinute: 50}}\n")
	c, found, err := Load(t.Context(), cfg, Options{})
	require.NoError(t, err)
	require.NoError(t, found.Err())
	require.Len(t, found, 3)
	assert.Equal(t, "services/former", found[0].Rule)
	assert.NotContains(t, c.Get(ServerService).Values, "jwt-secret")
	var secrets []string
	for _, p := range SecretPaths(cfg) {
		secrets = append(secrets, p.String())
	}
	assert.Subset(t, secrets, []string{"rest-server.default-pai-admin-password", "rest-server.jwt-secret"})
}

func TestAServiceOfOnesOwnMayHaveANameOfTheOriginal(t *testing.T) {
	known := func(name string) bool { return name == ServerService || name == "pylon" }
	assert.Equal(t, []string{"pylon", ServerService, "other"}, ResolveAll([]string{"pylon", "webportal", ServerService, "other"}, known))
	assert.Empty(t, ResolveAll(nil, known))
}
