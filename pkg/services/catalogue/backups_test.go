package catalogue

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	recipient = "recipients: [age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p]"
	toS3      = "to: s3://backups/pai, s3: {accessKeyId: AKIA, secretAccessKey: hunter2-hunter2}"
	toSSH     = "to: ssh://keeper@nas/srv/backups, ssh: {privateKey: hunter2-hunter2, knownHosts: nas ssh-ed25519 AAAA}"
)

func TestTheClusterIsBackedUpOnlyWhereTheConfigurationSaysSo(t *testing.T) {
	c, found, err := Load(t.Context(), gpuCluster(t, 1, ""), Options{})
	require.NoError(t, err)
	require.NoError(t, found.Err())
	assert.False(t, c.Get(BackupService).Enabled)
	for secret, section := range map[string]string{"s3.secretAccessKey": toS3, "ssh.privateKey": toSSH} {
		c, found, err = Load(t.Context(), gpuCluster(t, 1, "cluster-backup: {enabled: true, "+recipient+", "+section+"}\n"), Options{})
		require.NoError(t, err)
		require.NoError(t, found.Err())
		s := c.Get(BackupService)
		assert.True(t, s.Enabled)
		assert.Equal(t, "hunter2-hunter2", s.Credentials[secret].Reveal())
		assert.NotContains(t, s.Values, "hunter2")
	}
}

func TestAScheduleOfBackupsThatWouldComeToNothingIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ section, rule string }{
		"to no one":                 {toS3, "backups/no-recipients"},
		"to an empty list":          {"recipients: [], " + toS3, "backups/no-recipients"},
		"nowhere":                   {recipient, "backups/no-place"},
		"to S3 without a key":       {recipient + ", to: s3://backups/pai, s3: {accessKeyId: AKIA}", "backups/no-credentials"},
		"to S3 without its name":    {recipient + ", to: s3://backups/pai, s3: {secretAccessKey: x}", "backups/no-credentials"},
		"to a machine with no key":  {recipient + ", to: ssh://keeper@nas/srv, ssh: {knownHosts: nas ssh-ed25519 AAAA}", "backups/no-credentials"},
		"to whichever machine":      {recipient + ", to: ssh://keeper@nas/srv, ssh: {privateKey: x}", "backups/no-known-hosts"},
		"to a folder":               {recipient + ", to: /mnt/backups", "services/values"},
		"as no one in particular":   {recipient + ", to: ssh://nas/srv, ssh: {privateKey: x, knownHosts: y}", "services/values"},
		"to what is no key":         {"recipients: [AGE-SECRET-KEY-1], " + toS3, "services/values"},
		"at no time":                {recipient + ", schedule: daily, " + toS3, "services/values"},
		"over a wire that all read": {recipient + ", to: s3://backups/pai, s3: {endpoint: \"http://nas\", accessKeyId: a, secretAccessKey: b}", "services/values"},
	} {
		t.Run(name, func(t *testing.T) {
			_, found, err := Load(t.Context(), gpuCluster(t, 1, "cluster-backup: {enabled: true, "+c.section+"}\n"), Options{})
			require.NoError(t, err)
			require.ErrorContains(t, found.Err(), c.rule)
			_, found, err = Load(t.Context(), gpuCluster(t, 1, "cluster-backup: {"+c.section+"}\n"), Options{})
			require.NoError(t, err)
			if c.rule != "services/values" {
				require.NoError(t, found.Err(), "it is off")
			}
		})
	}
	cfg := gpuCluster(t, 1, "cluster-backup: {enabled: true, "+recipient+", "+toS3+"}\n")
	no := false
	cfg.Kubernetes.Kubernetes.Managed = &no
	_, found, err := Load(t.Context(), cfg, Options{})
	require.NoError(t, err)
	require.ErrorContains(t, found.Err(), "backups/not-ours")
}
