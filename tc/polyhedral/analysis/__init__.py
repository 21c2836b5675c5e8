"""What passes and proofs ask about sets, maps, trees and loops."""
