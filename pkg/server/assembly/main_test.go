package assembly_test

import (
	"os"
	"testing"

	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/test/programs"
)

func TestMain(m *testing.M) {
	code := kubetest.Wrap(m).Run()
	programs.Clean()
	os.Exit(code)
}
