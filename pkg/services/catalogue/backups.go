package catalogue

import "strings"

// BackupService is the service that makes scheduled backups of the cluster. The service's section has the same name.
const BackupService = "cluster-backup"

// checkBackups rejects settings that would make backups fail, or that would let the cluster itself read the backups.
func (b *builder) checkBackups() {
	s := b.services[BackupService]
	if s == nil || s.Upstream != nil || !s.Enabled {
		return
	}
	fail := func(key []any, rule, message, remedy string) {
		b.fail(at(BackupService, key...), "backups/"+rule, message, remedy)
	}
	text := func(of map[string]any, key string) string { t, _ := of[key].(string); return t }
	section := func(key string) map[string]any { m, _ := s.Values[key].(map[string]any); return m }
	own, to := text(s.Values, keyCredentialsSecret), text(s.Values, "to")
	if recipients, _ := s.Values["recipients"].([]any); len(recipients) == 0 {
		fail([]any{"recipients"}, "no-recipients", "backups would have no recipients, so they could not be encrypted", "create a key pair with age-keygen, store it outside of the cluster, and add its public key: recipients: [age1...]")
	}
	switch {
	case !b.cfg.IsManaged():
		fail([]any{keyEnabled}, "not-ours", "only the person who installed its Kubernetes knows where the cluster's keys are", "set enabled: false, and back it up with the tools of that installation")
	case to == "":
		fail([]any{"to"}, "no-place", "it doesn't set where backups are stored", "set to: ssh://USER@HOST/FOLDER or s3://BUCKET/PREFIX")
	case strings.HasPrefix(to, "s3://"):
		if text(section("s3"), "accessKeyId") == "" || own == "" && text(section("s3"), "secretAccessKey") == "" {
			fail([]any{"s3"}, "no-credentials", "it has no credentials for "+to, "set s3.accessKeyId and s3.secretAccessKey")
		}
	default:
		if own == "" && text(section("ssh"), "privateKey") == "" {
			fail([]any{"ssh"}, "no-credentials", "it has no private key for "+to, "set ssh.privateKey")
		}
		if text(section("ssh"), "knownHosts") == "" {
			fail([]any{"ssh"}, "no-known-hosts", "it doesn't know the key of the machine in "+to, "set ssh.knownHosts to the output of ssh-keyscan, after you compare it with the machine's own keys")
		}
	}
}
