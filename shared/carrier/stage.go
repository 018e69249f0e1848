package carrier

import (
	"github.com/aws/aws-sdk-go-v2/aws"

	"parley/shared/config"
)

// ForStage returns the carriers that workspaces of a stage may choose, by name. secret
// signs the simulator's callbacks; who reads none needs none.
func ForStage(aws aws.Config, cfg config.Config, secret []byte) map[string]Carrier {
	return map[string]Carrier{SimulatorName: NewSimulator(aws, cfg.SimulatorFunction, secret)}
}
