package ways

import (
	"testing"

	"github.com/openpai/paictl/pkg/cmd/cmdtest"
)

// The commands about people, by the server: an administrator, and a person who is none.
func TestPeopleAreLookedAfterByWhoeverSignedIn(t *testing.T) {
	b := open(t)
	b.signIn("root", "administrators", "operators")
	b.signIn("uma", "team")
	cmdtest.RunIn(t, "testdata/people", map[string]string{"XDG_CONFIG_HOME": b.home, "KUBECONFIG": "", "OPERATOR": b.kubeconfig})
}
