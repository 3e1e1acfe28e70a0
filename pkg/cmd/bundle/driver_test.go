package bundle

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/bundle/bundletest"
	"github.com/openpai/paictl/pkg/cluster/bundle/driver"
	"github.com/openpai/paictl/pkg/cmdutil"
)

func TestDriverPackagesAreAddedShownAndTakenOut(t *testing.T) {
	dir, debs := newBundle(t), t.TempDir()
	for _, name := range []string{"nvidia-driver-cuda", "nvidia-persistenced", "nvidia-kernel-open-dkms"} {
		bundletest.Deb(t, debs, name, "570.133.20-1", "amd64")
	}
	_, _, err := paictl(t, "add-driver", debs, "--bundle", dir)
	require.ErrorContains(t, err, "don't show which distribution")

	out, said, err := paictl(t, "add-driver", debs, "--bundle", dir, "--system", "debian12", "--dry-run")
	require.NoError(t, err)
	assert.Regexp(t, `(?m)^add +nvidia-driver-cuda +570\.133\.20-1 +debian12 +0\.0$`, out)
	assert.Contains(t, said, "3 packages would change")
	_, said, err = paictl(t, "add-driver", debs, "--bundle", dir, "--system", "debian12")
	require.NoError(t, err)
	assert.Contains(t, said, "debian12: the driver 570.133.20 (nvidia) can be installed, with the open module\n")
	assert.Contains(t, said, "warning: debian12: the module of 570.133.20 is built on the machine, and the bundle has no linux-headers")
	assert.Contains(t, said, "3 packages changed")
	out, said, err = paictl(t, "add-driver", debs, "--bundle", dir, "--system", "debian12", "-o", "json")
	require.NoError(t, err)
	assert.Contains(t, said, "nothing to do")
	var r driver.Report
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	assert.Len(t, r.Changes, 3)
	assert.Equal(t, []string{"open"}, r.Drivers[0].Modules)

	out, _, err = paictl(t, "list", dir, "--kind", bundle.KindDriver)
	require.NoError(t, err)
	assert.Regexp(t, `(?m)^nvidia-driver-cuda +driver-package +570\.133\.20-1 .* debian12 +nvidia-driver-cuda_570\.133\.20-1_amd64\.deb$`, out)
	_, said, err = paictl(t, "verify", dir)
	require.NoError(t, err)
	assert.Contains(t, said, "6 files")

	_, _, err = paictl(t, "remove-driver", "--bundle", dir)
	assert.Equal(t, cmdutil.ExitUsage, cmdutil.ExitCode(err))
	_, said, err = paictl(t, "remove-driver", "nvidia-persistenced", "--bundle", dir)
	require.NoError(t, err)
	assert.Contains(t, said, "warning: debian12: for the driver 570.133.20 (nvidia) the bundle doesn't have nvidia-persistenced")
	_, _, err = paictl(t, "remove-driver", "--all", "--bundle", dir)
	require.NoError(t, err)
	_, said, err = paictl(t, "remove-driver", "--all", "--bundle", dir)
	require.NoError(t, err)
	assert.Contains(t, said, "nothing to do")
}
