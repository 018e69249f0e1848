// Command infra is the CDK app: what a stage of the service consists of on AWS. The local
// stack deploys the same app to an emulator.
//
// A stage is two stacks: data, which leaves behind what it holds when it goes, and
// service, which can be made anew at any time.
package main

import (
	"fmt"
	"os"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"
)

// builtFunctions is where `make build` leaves the functions: <goarch>/<function>/bootstrap.
// The CDK CLI runs this command in the folder of cdk.json.
const builtFunctions = ".local/functions"

func main() { os.Exit(run()) }

// run closes CDK's engine last, as that may print to the line on which our error stands.
func run() int {
	defer jsii.Close()

	app := awscdk.NewApp(nil)
	if _, err := newStacks(app, builtFunctions); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	app.Synth(nil)
	return 0
}

type stacks struct{ data, service awscdk.Stack }

// newStacks fills app with the stacks of the stage that its context names. functions is
// the folder of the built functions.
func newStacks(app awscdk.App, functions string) (stacks, error) {
	// Nothing in the data stack can go while the service stack uses it.
	awscdk.CrossStackReferences_Of(app).Consume(awscdk.ReferenceStrength_STRONG)

	stage, err := readStage(app.Node(), functions)
	if err != nil {
		return stacks{}, err
	}
	if err := stage.checkBuilt(); err != nil {
		return stacks{}, err
	}
	data := newDataStack(app, stage)
	return stacks{data.stack, newServiceStack(app, stage, data)}, nil
}
