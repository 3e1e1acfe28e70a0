package render

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/openpai/paictl/pkg/job/protocol"
)

// newKey makes the private key that the tasks of one job use to log in to each other.
func newKey() (string, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", err
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		return "", err
	}
	return string(pem.EncodeToMemory(block)), nil
}

// keyed is the name of the plugin parameter that contains the job's private key.
const keyed = "jobKey"

// parameters returns the parameters of a plugin. For the plugin ssh, they include the private key of the job, which is stored only in the job's
// Secret.
func (r *renderer) parameters(p protocol.Plugin) json.RawMessage {
	raw := p.Parameters.Reveal()
	if p.Name != "ssh" {
		return raw
	}
	all := map[string]any{}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &all); err != nil { // it was written by pkg/job/protocol
			return raw
		}
	}
	if _, has := all[keyed]; has || strings.EqualFold(fmt.Sprint(all["jobssh"]), "false") {
		return raw
	}
	if r.sshKey == "" {
		makeKey := r.NewKey
		if makeKey == nil {
			makeKey = newKey
		}
		key, err := makeKey()
		if err != nil {
			r.fail(nil, "job/ssh-key", fmt.Sprintf("no key for ssh between the tasks can be made: %v", err), "try again, or write jobssh: false")
			return raw
		}
		r.sshKey = key
	}
	all[keyed] = map[string]any{"privateKey": r.sshKey}
	out, err := json.Marshal(all)
	if err != nil { // it was JSON before
		return raw
	}
	return out
}
