// Package learn trains small classifiers, plainly or with differential privacy: softmax regression (with two classes it is
// logistic regression) and a multilayer perceptron with tanh units, on dense rows of float64, by gonum's BLAS.
//
// [Network.Train] is stochastic gradient descent with momentum. [Network.TrainPrivately] is DP-SGD (Abadi et al., arXiv
// 1607.00133): Poisson subsampling, every example's gradient clipped in Euclidean norm, Gaussian noise, and an account of
// what was spent in Rényi differential privacy ([account.RDP]). Its batches and its noise come from a [noise.Stream]: with
// a secret [noise.Key] they are of cryptographic quality, and the noise is that of the Gaussian mechanism on integers,
// exactly; nothing is assumed of floating point, whose errors are bounded and taken out of the clipping norm.
//
// [Logistic] is logistic regression that is private at its ends: by noise on the weights, or in the objective.
//
// A [Model] also gives the gradient of its loss with respect to its input, which is what an attack on a prediction
// follows.
//
// This is no general library for deep learning: one kind of layer, one loss, and sizes at which a batch fits the cache.
// Training is one goroutine; the same stream gives the same model on any number of cores of one architecture.
package learn
